#include "vk/shader/application_kernels.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "vk/shader/binding_kinds.h"
#include "vk/shader/pipeline_pool.h"
#include "vk/shader/spirv.h"
#include "vk/shader/validate_spirv.h"
#include "vk/shader/variable_bytes.h"

namespace halfstep::vk {
namespace {

/// Workgroups are of as many invocations as specialization constant 0 says.
void check_entry_point(const plan::Dispatch& dispatch, std::span<const std::uint32_t> words) {
  constexpr std::uint32_t compute_model = 5;
  constexpr std::string_view wanted("main\0\0\0", 8);  // as its two words
  std::size_t found = 0;
  bool is_main = false;
  for_each_instruction(words, [&](const Instruction& i) {
    if (i.opcode != op_entry_point) return;
    ++found;
    is_main = i.operand(1) == compute_model && i.words.size() > 4 &&
              std::memcmp(i.words.data() + 3, wanted.data(), wanted.size()) == 0;
  });
  if (found != 1 || !is_main) {
    fail(dispatch.label, fmt::format("expected one entry point in {}, 'main' of a compute shader, got {}",
                                     dispatch.shader, found == 1 ? "another" : fmt::format("{} of them", found)));
  }
  const auto [x, y, z] = shader_facts(words, dispatch.constants).local_size;
  if (x == dispatch.constants.front() && y == 1 && z == 1) return;
  fail(dispatch.label,
       fmt::format("expected workgroups of {}x1x1 in {}, got {}x{}x{}", dispatch.constants.front(), dispatch.shader, x,
                   y, z),
       "declare layout(local_size_x_id = 0) in, as shaders/common/indexing.glsl does");
}

/// A dispatch gives constants of 32 bits.
void check_constants(const plan::Dispatch& dispatch, std::span<const std::uint32_t> words) {
  if (dispatch.constants.size() > first_storing_constant) {
    fail(dispatch.label, fmt::format("expected specialization constants below {} for {}, got {}",
                                     first_storing_constant, dispatch.shader, dispatch.constants.size() - 1));
  }
  std::map<std::uint32_t, std::uint32_t> numbers;  // id: number of the specialization constant
  std::map<std::uint32_t, std::uint32_t> bits;     // of types
  for_each_instruction(words, [&](const Instruction& i) {
    if (i.opcode == op_decorate && i.operand(2) == decoration_spec_id) numbers[i.operand(1)] = i.operand(3);
    if (i.opcode == op_type_int || i.opcode == op_type_float) bits[i.operand(1)] = i.operand(2);
    if (i.opcode != op_spec_constant || bits[i.operand(1)] == 32) return;
    const auto number = numbers.find(i.operand(2));
    if (number == numbers.end() || number->second >= dispatch.constants.size()) return;
    fail(dispatch.label, fmt::format("expected specialization constants of 32 bits in {}, got constant {} of {}",
                                     dispatch.shader, number->second, bits[i.operand(1)]));
  });
}

/// Whether kernels may declare it on a device that Halfstep opened: Vulkan 1.1 requires it, or it was enabled.
bool is_enabled(std::uint32_t capability, const Capabilities& c) {
  // Matrix, Shader, InputAttachment, Sampled1D, Image1D, SampledBuffer, ImageBuffer, ImageQuery, DerivativeControl and
  // DeviceGroup.
  constexpr std::array required{0u, 1u, 40u, 43u, 44u, 46u, 47u, 50u, 51u, 4437u};
  if (std::ranges::find(required, capability) != required.end()) return true;
  if (capability >= capability_group_non_uniform && capability <= capability_group_non_uniform_quad)
    return (c.subgroup_operations >> (capability - capability_group_non_uniform) & 1) != 0;  // in the same order
  if (capability >= capability_denorm_preserve && capability <= capability_rounding_to_zero) return c.float_controls;
  switch (capability) {
    case capability_float16:
      return true;  // Pipelines refuses it where the device lacks it
    case capability_storage_16bit:
      return c.storage_16bit;
    case capability_int64:
    case capability_physical_buffers:
      return c.buffer_address;
    case capability_memory_model:
    case capability_memory_model_of_device:
    case capability_matrices:
      return c.cooperative_matrix;
    case capability_bfloat16_type:
    case capability_bfloat16_matrices:
      return c.bfloat16_matrices;
    case capability_float8_type:
    case capability_float8_matrices:
      return c.float8_matrices;
    case capability_mixed_dots:
      return c.mixed_dots;
    default:
      return false;
  }
}

std::string name_of(std::uint32_t capability) {
  struct Name {
    std::uint32_t capability;
    std::string_view text;
  };
  constexpr std::array names{Name{capability_float64, "64-bit floats"},
                             Name{capability_int8, "8-bit integers"},
                             Name{capability_int16, "16-bit integers"},
                             Name{capability_int64, "64-bit integers"},
                             Name{capability_int64_atomics, "64-bit atomics"},
                             Name{capability_storage_16bit, "16-bit storage"},
                             Name{capability_physical_buffers, "buffer addresses"}};
  const auto* const found = std::ranges::find(names, capability, &Name::capability);
  return found != names.end() ? std::string(found->text) : fmt::format("SPIR-V's capability {}", capability);
}

void check_capabilities(const plan::Dispatch& dispatch, std::span<const std::uint32_t> words, const Capabilities& c) {
  for_each_instruction(words, [&](const Instruction& i) {
    if (i.opcode != op_capability || is_enabled(i.operand(1), c)) return;
    fail(ErrorCode::unsupported, dispatch.label,
         fmt::format("expected a device that was opened with {} for {}, got {}", name_of(i.operand(1)), dispatch.shader,
                     c.name),
         "a device that the application opened (Device::adopt) has what it enabled");
  });
}

/// Operands are the bindings of set 0; set 1 is that of common/storing.glsl.
void check_bindings(const plan::Dispatch& dispatch, std::span<const std::uint32_t> words) {
  constexpr std::array names{"a storage buffer", "a texel buffer", "a uniform buffer", "another resource"};
  for (const auto& [place, kind] : binding_kinds(words)) {
    const auto [set, binding] = place;
    if (set > storing_set || (set == storing_set && binding >= storing_bindings.bindings)) {
      fail(dispatch.label, fmt::format("expected the bindings of {} in set 0, got binding {} of set {}",
                                       dispatch.shader, binding, set));
    }
    if (set == 0 && binding >= dispatch.operands.size()) continue;
    const BindingKind bound = set == storing_set                  ? BindingKind::uniform_buffer
                              : dispatch.operands[binding].texels ? BindingKind::texel_buffer
                                                                  : BindingKind::storage_buffer;
    if (kind == bound) continue;
    fail(dispatch.label,
         fmt::format("expected binding {} of {}{} to be {}, got {}", binding, set == 0 ? "" : "set 1 of ",
                     dispatch.shader, names.at(static_cast<std::size_t>(bound)),
                     names.at(static_cast<std::size_t>(kind))));
  }
}

/// The bindings of set 1 that the code reads, a bit each. What to_quad() of common/precision.glsl reads is declared
/// wherever that file is included.
std::uint32_t storing_reads(std::span<const std::uint32_t> words) {
  std::map<std::uint32_t, std::uint32_t> bindings;  // of variables
  std::set<std::uint32_t> in_storing_set;
  std::uint32_t read = 0;
  for_each_instruction(words, [&](const Instruction& i) {
    if (i.opcode == op_decorate && i.operand(2) == decoration_binding) bindings[i.operand(1)] = i.operand(3);
    if (i.opcode == op_decorate && i.operand(2) == decoration_descriptor_set && i.operand(3) == storing_set)
      in_storing_set.insert(i.operand(1));
    const bool reads = i.opcode == op_access_chain || i.opcode == op_in_bounds_access_chain || i.opcode == op_load;
    if (reads && in_storing_set.contains(i.operand(3))) read |= 1U << bindings[i.operand(3)];
  });
  return read;
}

/// A kernel that stores narrow types has to take notice of how the precision has them stored.
void check_storing(const plan::Dispatch& dispatch, std::span<const std::uint32_t> words) {
  constexpr std::uint32_t noise_key = 1U << 0;
  constexpr std::uint32_t storing_key = 1U << 1;  // which to_quad() reads
  const plan::Storing& storing = dispatch.storing;
  const std::uint32_t wanted = (storing.stochastic ? noise_key : 0) | (storing.saturate ? storing_key : 0);
  if ((storing_reads(words) & wanted) == wanted) return;
  fail(dispatch.label,
       fmt::format("expected {} to store 16-bit results as the precision says ({}), got a kernel that does not",
                   dispatch.shader, storing.stochastic ? "rounded at random" : "saturating"),
       "write them by to_quad() of common/precision.glsl, or set CustomDispatch::stores_by_itself");
}

}  // namespace

void check_application_kernel(const plan::Dispatch& dispatch, const Constants& constants, const Context& context) {
  const std::span<const std::uint32_t> words = *dispatch.spirv;
  check_spirv(words, dispatch.shader);
  check_entry_point(dispatch, words);
  check_constants(dispatch, words);
  check_bindings(dispatch, words);
  check_storing(dispatch, words);
  if (variable_bytes(words, constants).has_empty) {
    fail(dispatch.label,
         fmt::format("expected shared arrays of at least 1 element in {}, got one of none", dispatch.shader));
  }
  if (context.owned()) check_capabilities(dispatch, words, context.capabilities());
}

}  // namespace halfstep::vk
