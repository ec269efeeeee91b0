#include "vk/shader/spirv.h"

#include <halfstep/error.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace halfstep::vk {
namespace {

constexpr std::uint32_t magic = 0x07230203;
constexpr std::uint32_t mode_local_size = 17;
constexpr std::uint32_t built_in_workgroup_size = 25;

/// Constants and decorations that determine the workgroup size.
struct WorkgroupConstants {
  std::map<std::uint32_t, std::uint32_t> values;    ///< id: value
  std::map<std::uint32_t, std::uint32_t> spec_ids;  ///< id: number of the specialization constant
  std::uint32_t workgroup_size = 0;                 ///< id of the constant that overrides mode LocalSize

  void decorate(const Instruction& i) {
    if (i.operand(2) == decoration_spec_id) spec_ids[i.operand(1)] = i.operand(3);
    if (i.operand(2) == decoration_built_in && i.operand(3) == built_in_workgroup_size) workgroup_size = i.operand(1);
  }
  std::uint32_t value(std::uint32_t id, std::span<const std::uint32_t> given) const {
    const auto spec = spec_ids.find(id);
    if (spec != spec_ids.end() && spec->second < given.size()) return given[spec->second];
    const auto value = values.find(id);
    return value != values.end() ? value->second : 1;
  }
};

void read_capability(ShaderFacts& facts, std::uint32_t capability) {
  facts.needs_float16 |= capability == capability_float16;
  facts.uses_subgroups |= capability >= capability_group_non_uniform && capability <= capability_group_non_uniform_quad;
}

}  // namespace

void for_each_instruction(std::span<const std::uint32_t> words, const std::function<void(const Instruction&)>& visit) {
  if (words.size() < spirv_header_words || words[0] != magic) fail("shader", "expected SPIR-V, got something else");
  for (std::size_t at = spirv_header_words; at < words.size();) {
    const std::size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) fail("shader", "expected SPIR-V, got a truncated instruction");
    visit({words[at] & 0xffff, words.subspan(at, length)});
    at += length;
  }
}

void append(std::vector<std::uint32_t>& words, std::uint32_t opcode, std::span<const std::uint32_t> operands) {
  words.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | opcode);
  words.insert(words.end(), operands.begin(), operands.end());
}

void append(std::vector<std::uint32_t>& words, std::uint32_t opcode, std::initializer_list<std::uint32_t> operands) {
  append(words, opcode, std::span(operands.begin(), operands.size()));
}

void append_extension(std::vector<std::uint32_t>& words, std::string_view name) {
  std::vector<std::uint32_t> text(name.size() / 4 + 1);  // zero-terminated and zero-padded
  std::memcpy(text.data(), name.data(), name.size());
  append(words, op_extension, text);
}

std::vector<std::uint32_t> with_bindings(std::span<const std::uint32_t> words, std::uint32_t count) {
  std::set<std::uint32_t> in_storing_set;
  std::map<std::uint32_t, std::size_t> places;  // of each variable's binding
  for_each_instruction(words, [&](const Instruction& i) {
    if (i.opcode != op_decorate) return;
    if (i.operand(2) == decoration_descriptor_set && i.operand(3) == storing_set) in_storing_set.insert(i.operand(1));
    if (i.operand(2) == decoration_binding)
      places[i.operand(1)] = static_cast<std::size_t>(i.words.data() - words.data()) + 3;
  });
  std::vector<std::uint32_t> result(words.begin(), words.end());
  for (const auto& [variable, place] : places) {
    if (!in_storing_set.contains(variable)) result[place] = std::min(result[place], count - 1);
  }
  return result;
}

ShaderFacts shader_facts(std::span<const std::uint32_t> words, std::span<const std::uint32_t> constants) {
  ShaderFacts facts;
  WorkgroupConstants known;
  std::map<std::uint32_t, std::uint32_t> bindings;  // variable: one more than its binding
  std::set<std::uint32_t> in_storing_set;
  std::uint32_t glsl = 0;
  for_each_instruction(words, [&](const Instruction& i) {
    switch (i.opcode) {
      case op_capability:
        return read_capability(facts, i.operand(1));
      case op_ext_inst_import:
        if (i.operand(2) == glsl_begins) glsl = i.operand(1);
        return;
      case op_ext_inst:
        facts.unpacks_halves |= i.operand(3) == glsl && i.operand(4) == glsl_unpack_half_2x16;
        return;
      case op_entry_point:
        facts.entry_point = i.operand(2);
        return;
      case op_execution_mode:
        if (i.operand(2) == mode_local_size) facts.local_size = {i.operand(3), i.operand(4), i.operand(5)};
        return;
      case op_decorate:
        known.decorate(i);
        if (i.operand(2) == decoration_binding) bindings[i.operand(1)] = i.operand(3) + 1;
        if (i.operand(2) == decoration_descriptor_set && i.operand(3) == storing_set)
          in_storing_set.insert(i.operand(1));
        return;
      case op_type_float:
        facts.has_float16 |= i.operand(2) == 16 && i.words.size() == 3;  // with more it is another, as bf16
        facts.has_float32 |= i.operand(2) == 32;
        return;
      case op_constant:
      case op_spec_constant:
        known.values[i.operand(2)] = i.operand(3);
        return;
      case op_constant_composite:
      case op_spec_constant_composite:
        if (i.operand(2) != known.workgroup_size) return;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          facts.local_size[axis] = known.value(i.operand(3 + axis), constants);
        }
        return;
      default:
        return;
    }
  });
  facts.has_storing_set = !in_storing_set.empty();
  for (const auto& [variable, end] : bindings) {
    if (!in_storing_set.contains(variable)) facts.bindings = std::max(facts.bindings, end);
  }
  return facts;
}

}  // namespace halfstep::vk
