#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "vk/optimize/specialized.h"
#include "vk/shader/additions.h"
#include "vk/shader/pushed_numbers.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"
#include "vk/shader/validate_spirv.h"
#include "vk/shader/variable_bytes.h"

namespace halfstep {
namespace {

using Words = std::vector<std::uint32_t>;

/// How often a module loads from its push constants.
std::size_t pushed_loads(std::span<const std::uint32_t> words) {
  const vk::Declarations module(words);
  std::set<std::uint32_t> places;
  std::size_t loads = 0;
  vk::for_each_instruction(words, [&](const vk::Instruction& i) {
    const bool chain = i.opcode == vk::op_access_chain || i.opcode == vk::op_in_bounds_access_chain;
    if (chain && module.variables.contains(i.operand(3))) {
      if (module.types.at(i.operand(1))[1] == vk::storage_push_constant) places.insert(i.operand(2));
    }
    if (i.opcode == vk::op_load && places.contains(i.operand(3))) ++loads;
  });
  return loads;
}

std::vector<std::byte> bytes_of(std::span<const std::uint32_t> numbers) {
  std::vector<std::byte> bytes(numbers.size_bytes());
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

}  // namespace

TEST_CASE("what is pushed to a kernel can be constants, and it stays valid") {
  std::size_t checked = 0;
  for (const std::string_view name : vk::shader_names()) {
    CAPTURE(name);
    const std::span<const std::uint32_t> words = vk::find_shader(name).words;
    const std::uint64_t pushed = vk::variable_bytes(words, {}).pushed;
    if (pushed == 0) continue;
    const std::vector<std::byte> numbers(pushed, std::byte{1});
    const Words known = vk::with_pushed_numbers(words, 0, numbers);
    const bool of_matrices = name.find("cooperative") != std::string_view::npos;  // which old validators do not know
    if (!of_matrices) vk::check_spirv(known, name);
    if (pushed_loads(known) == 0) ++checked;  // others have addresses, or look something up in an array
  }
  CHECK(checked > 400);
}

TEST_CASE("numbers are put where their bytes are, and what is pushed before them is still read") {
  // gemm_tile.glsl's first four numbers are scalars, and it has vectors of two from byte 64 on.
  const Words words = vk::specialized(vk::find_shader("gemm.patches_row.f32.tile32").words, {});
  const auto all = static_cast<std::uint32_t>(vk::variable_bytes(words, {}).pushed);
  Words numbers(all / 4);
  for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = 0x5000 + i;
  const std::size_t before = pushed_loads(words);
  REQUIRE(before > 10);
  const std::vector<std::byte> bytes = bytes_of(numbers);
  const Words known = vk::with_pushed_numbers(words, 0, bytes);
  CHECK(pushed_loads(known) == 0);
  std::set<std::uint32_t> found;
  for (const auto& [id, value] : vk::Declarations(known).constants) {
    if (value >= 0x5000 && value < 0x5000 + numbers.size()) found.insert(value - 0x5000);
  }
  CHECK(found.contains(0));   // rows
  CHECK(found.contains(16));  // the height of the grid
  CHECK(found.contains(17));
  // Of a kernel whose first number is pushed in addition, all others are.
  const Words others = vk::with_pushed_numbers(words, 4, std::span(bytes).subspan(4));
  CHECK(pushed_loads(others) > 0);
  CHECK(pushed_loads(others) < before);
  CHECK(pushed_loads(vk::with_pushed_numbers(words, 0, {})) == before);
}

}  // namespace halfstep
