#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vk/shader/exact_arithmetic.h"
#include "vk/shader/first_group.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"
#include "vk/shader/validate_spirv.h"
#include "vk/shader/variable_bytes.h"
#include "vk/shader/windows.h"

namespace halfstep {
namespace {

/// All operands in `count` windows of 4 KiB.
plan::Windows all_in_windows(std::uint32_t bindings, std::uint32_t count) {
  plan::Windows windows{.shift = 12};
  for (std::uint32_t i = 0; i < bindings; ++i) {
    windows.operands.push_back({.count = count, .rest = bindings + i * (count - 1), .tensor = "t" + std::to_string(i)});
  }
  return windows;
}

/// The code as a reproducible trainer has it, or as it is where a kernel has no such form.
std::vector<std::uint32_t> exact(std::span<const std::uint32_t> words, std::string_view name) {
  try {
    return vk::with_exact_arithmetic(words, name);
  } catch (const Error&) {
    return {words.begin(), words.end()};
  }
}

/// With all that is done to a kernel before and after, in that order.
void check_with_the_rest(std::span<const std::uint32_t> words, const plan::Windows& windows, std::string_view name) {
  const auto pushed = static_cast<std::uint32_t>(vk::variable_bytes(words, {}).pushed);
  const std::vector<std::uint32_t> made = vk::with_windows(exact(words, name), windows, name);
  vk::check_spirv(pushed == 0 ? made : vk::with_first_group(made, pushed), name);
}

}  // namespace

TEST_CASE("every kernel can have each of its buffers in windows, and is valid then") {
  std::size_t checked = 0;
  std::size_t with_state = 0;
  for (const std::string_view name : vk::shader_names()) {
    CAPTURE(name);
    const std::span<const std::uint32_t> words = vk::find_shader(name).words;
    const std::uint32_t bindings = vk::shader_facts(words, {}).bindings;
    for (const std::uint32_t count : {2U, 5U}) {
      plan::Windows windows = all_in_windows(bindings, count);
      try {
        vk::with_windows(words, windows, name);
      } catch (const Error& error) {
        // The StepState, which is no tensor.
        CHECK_MESSAGE(std::string(error.what()).find("'t0', which is") != std::string::npos, std::string(error.what()));
        windows.operands[0].count = 1;
        ++with_state;
      }
      const std::vector<std::uint32_t> made = vk::with_windows(words, windows, name);
      CHECK(made.size() > words.size());
      ++checked;
      if (name.find("cooperative") != std::string_view::npos) continue;  // which old validators do not know
      // Alone in five parts, with the rest in two: validating takes most of this test's time.
      if (count == 2) {
        check_with_the_rest(words, windows, name);
      } else {
        vk::check_spirv(made, name);
      }
    }
  }
  CHECK(checked > 900);
  CHECK(with_state < 60);
}

}  // namespace halfstep
