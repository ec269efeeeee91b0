#include "vk/device/settings.h"

#include <halfstep/error.h>
#include <halfstep/process.h>

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

#include "base/files.h"

namespace halfstep::vk {
namespace {

struct Word {
  std::string_view text;
  int value;
};

/// The value of the word in an environment variable; the first word's value if it is not set.
int chosen_word(const char* variable, std::string_view where, std::span<const Word> words, std::string_view listing) {
  const std::optional<std::string> text = environment(variable);
  if (!text) return words.front().value;
  for (const Word& word : words) {
    if (word.text == *text) return word.value;
  }
  fail(where, fmt::format("expected {} to be {}, got {}", variable, listing, *text));
}

bool fusion_wanted() {
  constexpr Word words[] = {{"on", 1}, {"off", 0}};
  return chosen_word("HALFSTEP_FUSION", "device", words, "empty, on or off") != 0;
}

/// Of a variable that is 0 or 1, and 0 where it is not set.
bool is_one(const char* variable) {
  constexpr Word words[] = {{"0", 0}, {"1", 1}};
  return chosen_word(variable, "device", words, "0 or 1") != 0;
}

Tuning tuning_wanted() {
  constexpr Word words[] = {{"on", static_cast<int>(Tuning::on)},
                            {"off", static_cast<int>(Tuning::off)},
                            {"force", static_cast<int>(Tuning::force)}};
  return static_cast<Tuning>(chosen_word("HALFSTEP_TUNE", "tune", words, "off, on or force"));
}

std::string checked_tier(const std::string& tier) {
  if (tier.empty() || tier == "packed" || tier == "native") return tier;
  fail("device", fmt::format("expected HALFSTEP_TIER to be empty, packed or native, got {}", tier));
}

double checked_submit_milliseconds(std::optional<double> chosen) {
  constexpr double by_default = 100;
  const std::optional<std::string> text = environment("HALFSTEP_SUBMIT_MS");
  double value = chosen.value_or(by_default);
  bool good = true;
  if (!chosen && text) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    good = error == std::errc{} && end == text->data() + text->size();
  }
  if (good && value > 0 && std::isfinite(value)) return value;
  fail("device", fmt::format("expected HALFSTEP_SUBMIT_MS to be a positive number of milliseconds, got {}",
                             chosen ? fmt::format("{}", *chosen) : *text));
}

}  // namespace

Settings settings(const DeviceSettings& chosen) {
  Settings all;
  all.tier = checked_tier(chosen.tier ? *chosen.tier : environment("HALFSTEP_TIER").value_or(""));
  all.fusion = chosen.fusion ? *chosen.fusion : fusion_wanted();
  all.tuning = chosen.tuning ? *chosen.tuning : tuning_wanted();
  all.gemm = chosen.gemm ? *chosen.gemm : environment("HALFSTEP_GEMM").value_or("");
  all.submit_milliseconds = checked_submit_milliseconds(chosen.submit_milliseconds);
  all.cache_folder = chosen.cache_folder ? process::made_folder(*chosen.cache_folder) : cache_folder();
  all.validation = chosen.validation ? *chosen.validation : is_one("HALFSTEP_VALIDATION");
  all.low_priority = chosen.low_priority ? *chosen.low_priority : is_one("HALFSTEP_LOW_PRIORITY");
  all.may_fork = chosen.may_fork;
  all.limits = limits_from(chosen.limits ? *chosen.limits : environment("HALFSTEP_LIMITS").value_or(""));
  return all;
}

}  // namespace halfstep::vk
