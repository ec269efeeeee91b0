#include "vk/device/float_controls.h"

#include <set>

#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

/// An execution mode of SPV_KHR_float_controls and the capability it needs.
struct Mode {
  std::uint32_t mode;
  std::uint32_t capability;
};
constexpr Mode denorm_preserve{4459, 4464};
constexpr Mode signed_zero_inf_nan_preserve{4461, 4466};
constexpr Mode rounding_mode_rte{4462, 4467};
constexpr std::uint32_t rounding_mode_rtz = 4468;  // the last capability of these

struct Wanted {
  Mode mode;
  std::uint32_t width;
};

using Promise = bool FloatControls::*;

/// Adds `mode` for each width that the shader uses and the device supports. If the device cannot set the widths
/// independently, adds it for all of them or for none.
void want(std::vector<Wanted>& wanted, Mode mode, Promise promise, bool independent, const ShaderFacts& facts,
          const Capabilities& capabilities) {
  const bool for16 = facts.has_float16 && capabilities.float16.*promise;
  const bool for32 = facts.has_float32 && capabilities.float32.*promise;
  const bool all = (for16 || !facts.has_float16) && (for32 || !facts.has_float32);
  if (!independent && !all) return;
  if (for16) wanted.push_back({mode, 16});
  if (for32) wanted.push_back({mode, 32});
}

std::vector<Wanted> wanted_modes(const ShaderFacts& facts, const Capabilities& c) {
  std::vector<Wanted> wanted;
  if (!c.float_controls) return wanted;
  // f16 in words takes no 16-bit type, but whether unpacking it keeps subnormals depends on the mode for that width.
  ShaderFacts of_denormals = facts;
  of_denormals.has_float16 |= facts.unpacks_halves && c.float16.preserves_denormals;
  want(wanted, denorm_preserve, &FloatControls::preserves_denormals, c.denormals_independent, of_denormals, c);
  want(wanted, rounding_mode_rte, &FloatControls::rounds_to_nearest_even, c.rounding_independent, facts, c);
  want(wanted, signed_zero_inf_nan_preserve, &FloatControls::preserves_signed_zero_inf_nan, true, facts, c);
  return wanted;
}

void append_capabilities(std::vector<std::uint32_t>& words, const std::vector<Wanted>& wanted) {
  std::set<std::uint32_t> capabilities;
  for (const Wanted& one : wanted) capabilities.insert(one.mode.capability);
  for (const std::uint32_t capability : capabilities) append(words, op_capability, {capability});
}

void append_modes(std::vector<std::uint32_t>& words, const std::vector<Wanted>& wanted, std::uint32_t entry_point) {
  for (const Wanted& one : wanted) append(words, op_execution_mode, {entry_point, one.mode.mode, one.width});
}

}  // namespace

bool has_float_controls(std::span<const std::uint32_t> words) {
  bool found = false;
  for_each_instruction(words, [&](const Instruction& i) {
    const std::uint32_t capability = i.opcode == op_capability ? i.operand(1) : 0;
    found |= capability >= denorm_preserve.capability && capability <= rounding_mode_rtz;
  });
  return found;
}

bool promises_subnormals(const Capabilities& c) {
  return c.float_controls && c.float16.preserves_denormals &&
         (c.denormals_independent || c.float32.preserves_denormals);
}

bool promises_rounding(const Capabilities& c) {
  return c.float16_arithmetic && promises_subnormals(c) && c.float16.rounds_to_nearest_even &&
         (c.rounding_independent || c.float32.rounds_to_nearest_even);
}

std::vector<std::uint32_t> with_float_controls(std::span<const std::uint32_t> words, const Capabilities& capabilities) {
  const ShaderFacts facts = shader_facts(words, {});
  const std::vector<Wanted> wanted = wanted_modes(facts, capabilities);
  if (wanted.empty() || has_float_controls(words)) return {words.begin(), words.end()};
  // A module's sections have a fixed order: capabilities, extensions, ..., entry points, execution modes.
  std::vector<std::uint32_t> result(words.begin(), words.begin() + spirv_header_words);
  bool in_capabilities = true;
  bool in_entry_points = false;
  for_each_instruction(words, [&](const Instruction& i) {
    if (in_capabilities && i.opcode != op_capability) {
      in_capabilities = false;
      append_capabilities(result, wanted);
      append_extension(result, "SPV_KHR_float_controls");
    }
    if (in_entry_points && i.opcode != op_entry_point) append_modes(result, wanted, facts.entry_point);
    in_entry_points = i.opcode == op_entry_point;
    result.insert(result.end(), i.words.begin(), i.words.end());
  });
  return result;
}

}  // namespace halfstep::vk
