#include "bench/commands.h"

#include <fmt/format.h>

namespace bench {

CLI::Validator count_up_to(std::int64_t most) {
  const auto check = [most](std::string& text) -> std::string {
    std::int64_t value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= 1 && value <= most) return {};
    return fmt::format("expected a whole number from 1 to {}, got {}", most, text);
  };
  return {check, fmt::format("[1 to {}]", most), "count"};
}

void add_dtype(CLI::App& app, std::string& dtype) {
  app.add_option("--dtype", dtype, "Type the tensors are stored in; sums are f32")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->capture_default_str();
}

void add_precision(CLI::App& app, std::string& precision) {
  app.add_option("--precision", precision, "What is stored and computed in which type")
      ->check(CLI::IsMember(halfstep::Precision::names()))
      ->capture_default_str();
}

halfstep::Precision precision_of(const std::string& name) {
  return halfstep::Precision::level(name);
}

}  // namespace bench
