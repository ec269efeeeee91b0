#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "vk/shader/exact_arithmetic.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"
#include "vk/shader/validate_spirv.h"
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
      if (name.find("cooperative") == std::string_view::npos) vk::check_spirv(made, name);
      ++checked;
    }
  }
  CHECK(checked > 900);
  CHECK(with_state < 60);
}

}  // namespace halfstep
