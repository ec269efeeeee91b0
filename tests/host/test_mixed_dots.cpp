#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "vk/optimize/specialized.h"
#include "vk/shader/mixed_dots.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"
#include "vk/shader/validate_spirv.h"

namespace halfstep {
namespace {

using Words = std::vector<std::uint32_t>;

/// The types of all values by their ids, and the types themselves.
struct Types {
  explicit Types(const Words& words) {
    vk::for_each_instruction(words, [&](const vk::Instruction& i) {
      if (i.opcode == vk::op_type_float) floats[i.operand(1)] = i.operand(2);
      if (i.opcode == vk::op_type_vector) vectors[i.operand(1)] = {i.operand(2), i.operand(3)};
      if (i.words.size() > 2) of[i.operand(2)] = i.operand(1);
    });
  }

  bool is_pair_of_halves(std::uint32_t id) const {
    const auto vector = vectors.find(of.at(id));
    return vector != vectors.end() && floats.at(vector->second[0]) == 16 && vector->second[1] == 2;
  }
  bool is_float(std::uint32_t id) const { return floats.contains(of.at(id)) && floats.at(of.at(id)) == 32; }

  std::map<std::uint32_t, std::uint32_t> floats;
  std::map<std::uint32_t, std::array<std::uint32_t, 2>> vectors;
  std::map<std::uint32_t, std::uint32_t> of;
};

/// The module in instructions that SPIRV-Tools of any age knows: a dot product in f16 that is converted and added.
Words in_older_instructions(const Words& words, std::uint32_t half) {
  constexpr std::uint32_t capability_mixed_dots = 6912;
  Words result(words.begin(), words.begin() + vk::spirv_header_words);
  std::uint32_t& bound = result[3];
  vk::for_each_instruction(words, [&](const vk::Instruction& i) {
    if (i.opcode == vk::op_capability && i.operand(1) == capability_mixed_dots) return;
    if (i.opcode == vk::op_extension && i.operand(1) == 0x5f565053 && i.operand(2) == 0x564c4156) return;  // "SPV_VALV"
    if (i.opcode != vk::op_f_dot2_mix_acc32) {
      result.insert(result.end(), i.words.begin(), i.words.end());
      return;
    }
    const std::uint32_t dot = result[3]++;
    const std::uint32_t wide = result[3]++;
    vk::append(result, vk::op_dot, {half, dot, i.operand(3), i.operand(4)});
    vk::append(result, vk::op_f_convert, {i.operand(1), wide, dot});
    vk::append(result, vk::op_f_add, {i.operand(1), i.operand(2), i.operand(5), wide});
  });
  CHECK(bound > words[3]);
  return result;
}

void check_dots(const Words& words, std::string_view name) {
  const Types types(words);
  std::uint32_t half = 0;
  for (const auto& [id, bits] : types.floats) half = bits == 16 ? id : half;
  std::size_t dots = 0;
  std::set<std::uint32_t> products;
  std::map<std::uint32_t, std::uint32_t> word_of;             // what is unpacked or taken as a pair
  std::set<std::pair<std::uint32_t, std::uint32_t>> factors;  // words
  vk::for_each_instruction(words, [&](const vk::Instruction& i) {
    if (i.opcode == vk::op_ext_inst) word_of[i.operand(2)] = i.operand(5);
    if (i.opcode == vk::op_bitcast) word_of[i.operand(2)] = i.operand(3);
    if (i.opcode == vk::op_dot) {
      products.insert(i.operand(2));
      factors.emplace(word_of.at(i.operand(3)), word_of.at(i.operand(4)));
    }
    if (i.opcode == vk::op_f_add) {
      CHECK_FALSE(products.contains(i.operand(3)));
      CHECK_FALSE(products.contains(i.operand(4)));
    }
    if (i.opcode != vk::op_f_dot2_mix_acc32) return;
    ++dots;
    CHECK(i.words.size() == 6);
    CHECK(types.is_pair_of_halves(i.operand(3)));
    CHECK(types.is_pair_of_halves(i.operand(4)));
    CHECK(types.is_float(i.operand(5)));
    CHECK(types.is_float(i.operand(2)));
    CHECK(factors.contains({word_of.at(i.operand(3)), word_of.at(i.operand(4))}));
  });
  CHECK(dots > 0);
  CHECK_NOTHROW(vk::check_spirv(in_older_instructions(words, half), name));
}

}  // namespace

TEST_CASE("an instruction takes the place of sums of products of pairs, in the kernels for it and in no others") {
  std::size_t kernels = 0;
  for (const std::string_view name : vk::shader_names()) {
    CAPTURE(name);
    const auto words = vk::find_shader(name).words;
    const Words plain(words.begin(), words.end());
    const Words changed = vk::with_mixed_dots(plain);
    if (!name.starts_with("gemm_dots.")) {
      CHECK(changed == plain);
      continue;
    }
    check_dots(changed, name);
    // Pairs of both operands, and the sum is stored as it is.
    const vk::Constants constants{{0, 256}, {1, 0}, {2, 0}, {3, 0}, {4, 4}, {5, 3}, {6, 0}, {34, 5 << 8}};
    const Words specialized = vk::specialized(plain, constants);
    CHECK(specialized.size() != plain.size());
    check_dots(vk::with_mixed_dots(specialized), name);
    ++kernels;
  }
  CHECK(kernels == 21);
}

}  // namespace halfstep
