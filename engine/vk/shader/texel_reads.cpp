#include "vk/shader/texel_reads.h"

#include <map>
#include <optional>

#include "vk/shader/additions.h"
#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

constexpr std::uint32_t lists_all_variables = 0x10400;  // entry points do, from SPIR-V 1.4 on
constexpr std::uint32_t storage_uniform_constant = 0;
constexpr std::uint32_t storage_uniform = 2;
constexpr std::uint32_t storage_buffer = 12;
constexpr std::uint32_t dimension_buffer = 5;
constexpr std::uint32_t capability_sampled_buffer = 46;
constexpr std::uint32_t quad_bytes = 16;

/// A pointer to a quad.
struct Pointer {
  std::uint32_t binding;
  std::uint32_t index;
};

/// The storage buffers of a module, and the pointers into them.
class Buffers {
 public:
  explicit Buffers(std::span<const std::uint32_t> words) : module(words) {
    for (const auto& [id, type] : module.variables) {
      const std::optional<std::uint32_t> binding = binding_of(id, type);
      if (binding) bindings[id] = *binding;
    }
    bool in_functions = false;
    for_each_instruction(words, [&](const Instruction& i) {
      in_functions |= i.opcode == op_function;
      if (in_functions) visit(i);
    });
  }

  Declarations module;
  std::map<std::uint32_t, std::uint32_t> bindings;  ///< of variables
  std::map<std::uint32_t, Pointer> pointers;
  std::uint32_t read = 0;   ///< bit i: quads are loaded from binding i
  std::uint32_t other = 0;  ///< it is also used in another way

 private:
  std::optional<std::uint32_t> binding_of(std::uint32_t variable, std::uint32_t type) const {
    const std::uint32_t storage = module.types.at(type)[1];
    const auto found = module.decorations.find(variable);
    if ((storage != storage_buffer && storage != storage_uniform) || found == module.decorations.end()) return {};
    std::optional<std::uint32_t> binding;
    for (const std::vector<std::uint32_t>& decoration : found->second) {
      if (decoration[0] == decoration_descriptor_set && decoration[1] != 0) return {};
      if (decoration[0] == decoration_binding && decoration[1] < 32) binding = decoration[1];
    }
    return binding;
  }

  /// Whether a type is a vector of four f32.
  bool is_quad(std::uint32_t type) const {
    const std::vector<std::uint32_t>& vector = module.types.at(type);
    if (vector[0] != op_type_vector || vector[2] != 4) return false;
    const std::vector<std::uint32_t>& part = module.types.at(vector[1]);
    return part[0] == op_type_float && part[1] == 32;
  }

  /// Whether a variable is a block that is nothing but quads.
  bool has_quads(std::uint32_t variable) const {
    const std::vector<std::uint32_t>& block = module.types.at(module.pointee(module.variables.at(variable)));
    if (block[0] != op_type_struct || block.size() != 2) return false;
    const std::vector<std::uint32_t>& array = module.types.at(block[1]);
    return array[0] == op_type_runtime_array && is_quad(array[1]) && module.stride(block[1]) == quad_bytes;
  }

  void visit(const Instruction& i) {
    const bool chain = i.opcode == op_access_chain || i.opcode == op_in_bounds_access_chain;
    if (chain && i.words.size() == 6 && bindings.contains(i.operand(3))) {
      const std::uint32_t binding = bindings.at(i.operand(3));
      const bool known = has_quads(i.operand(3)) && module.integers.contains(i.operand(5));
      if (!known) other |= 1U << binding;
      pointers[i.operand(2)] = {binding, i.operand(5)};
      return;
    }
    const auto pointer = i.opcode == op_load ? pointers.find(i.operand(3)) : pointers.end();
    if (pointer != pointers.end()) {
      read |= 1U << pointer->second.binding;
      if (i.words.size() != 4 || !is_quad(i.operand(1))) other |= 1U << pointer->second.binding;
      return;
    }
    // Numbers among the operands may be taken for ids, which only leaves a buffer as it is.
    for (const std::uint32_t word : i.words.subspan(1)) {
      const auto variable = bindings.find(word);
      if (variable != bindings.end()) other |= 1U << variable->second;
      const auto use = pointers.find(word);
      if (use != pointers.end()) other |= 1U << use->second.binding;
    }
  }
};

}  // namespace

std::uint32_t quad_reads(std::span<const std::uint32_t> words) {
  if (words.size() < spirv_header_words || words[1] >= lists_all_variables) return 0;
  const Buffers buffers(words);
  return buffers.read & ~buffers.other;
}

std::vector<std::uint32_t> with_texel_reads(std::span<const std::uint32_t> words, std::uint32_t bindings) {
  if (bindings == 0) return {words.begin(), words.end()};
  const Buffers buffers(words);
  Additions added(words);
  const auto chosen = [&](std::uint32_t variable) {
    const auto found = buffers.bindings.find(variable);
    return found != buffers.bindings.end() && (bindings >> found->second & 1) != 0;
  };
  const std::uint32_t number = added.type({op_type_float, 32});
  const std::uint32_t image = added.type({op_type_image, number, dimension_buffer, 0, 0, 0, 1, 0});
  const std::uint32_t to_image = added.type({op_type_pointer, storage_uniform_constant, image});
  std::map<std::uint32_t, std::uint32_t> images;  // by binding
  std::vector<std::uint32_t> body;
  bool in_capabilities = true;
  bool has_capability = false;
  bool in_functions = false;
  for_each_instruction(words, [&](const Instruction& i) {
    in_functions |= i.opcode == op_function;
    if (in_capabilities && i.opcode == op_capability) has_capability |= i.operand(1) == capability_sampled_buffer;
    if (in_capabilities && i.opcode != op_capability) {
      in_capabilities = false;
      if (!has_capability) append(body, op_capability, {capability_sampled_buffer});
    }
    const bool about = i.opcode == op_name || i.opcode == op_decorate;
    if (!in_functions && about && chosen(i.operand(1))) return;
    if (!in_functions && i.opcode == op_variable && chosen(i.operand(2))) return;
    const auto pointer = [&](std::size_t operand) {
      const auto found = buffers.pointers.find(i.operand(operand));
      return found != buffers.pointers.end() && (bindings >> found->second.binding & 1) != 0 ? &found->second : nullptr;
    };
    const bool chain = i.opcode == op_access_chain || i.opcode == op_in_bounds_access_chain;
    if (in_functions && chain && pointer(2) != nullptr) return;
    const Pointer* from = in_functions && i.opcode == op_load ? pointer(3) : nullptr;
    if (from == nullptr) {
      body.insert(body.end(), i.words.begin(), i.words.end());
      return;
    }
    const auto [variable, fresh] = images.try_emplace(from->binding, 0);
    if (fresh) variable->second = added.variable(to_image, from->binding);
    const std::uint32_t loaded = added.next_id();
    append(body, op_load, {image, loaded, variable->second});
    append(body, op_image_fetch, {i.operand(1), i.operand(2), loaded, from->index});
  });
  return added.finish(body);
}

}  // namespace halfstep::vk
