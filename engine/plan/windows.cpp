#include "plan/windows.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <string_view>

#include "base/beyond_limit.h"
#include "plan/layout.h"
#include "plan/program.h"

namespace halfstep::plan {
namespace {

constexpr std::string_view smaller_tensors = "a smaller batch makes smaller tensors";

/// The largest tensor that is bound as a whole: one that lies in one part of an arena, too.
std::uint64_t most_bound(const Target& target) {
  return target.part_bytes == 0 ? target.max_storage_range : std::min(target.max_storage_range, target.part_bytes);
}

std::uint32_t windows_in(std::uint64_t bytes, std::uint32_t shift) {
  return static_cast<std::uint32_t>(((bytes - 1) >> shift) + 1);
}

bool needs_windows(const Program& program, const Target& target, const Operand& operand) {
  return !operand.texels && program.tensors[operand.tensor].bytes > most_bound(target);
}

void check_elements(const Program& program, const Dispatch& dispatch) {
  for (const Operand& operand : dispatch.operands) {
    const ProgramTensor& tensor = program.tensors[operand.tensor];
    const std::uint64_t elements = tensor.bytes / static_cast<std::uint64_t>(bytes(tensor.type.dtype));
    if (elements < elements_end) continue;
    fail_beyond_limit(dispatch.label,
                      fmt::format("expected tensors of fewer than 2^31 elements, padding included, got '{}' {} of {}",
                                  tensor.name, to_string(tensor.type), elements),
                      smaller_tensors);
  }
}

void check_texels(const Program& program, const Target& target, const Dispatch& dispatch) {
  for (const Operand& operand : dispatch.operands) {
    const ProgramTensor& tensor = program.tensors[operand.tensor];
    const std::uint64_t quads = tensor.bytes / (4 * static_cast<std::uint64_t>(bytes(tensor.type.dtype)));
    if (!operand.texels || quads <= target.max_texels) continue;
    fail_beyond_limit(
        dispatch.label,
        fmt::format(
            "expected texel buffers of at most {} texels, the device's maxTexelBufferElements, got '{}' {} of {}",
            target.max_texels, tensor.name, to_string(tensor.type), quads),
        smaller_tensors);
  }
}

/// "; 'x' f32 {...} takes 3 of them, of 134217728 bytes each", of the tensor with the most windows.
std::string largest_share(const Program& program, const Dispatch& dispatch, const Windows& windows,
                          std::size_t surplus) {
  const auto most = std::ranges::max_element(windows.operands, {}, &OperandWindows::count);
  const auto index = static_cast<std::size_t>(most - windows.operands.begin());
  const ProgramTensor& tensor = program.tensors[dispatch.operands[index].tensor];
  std::string text = fmt::format(": '{}' {} of {} bytes takes {}, of {} bytes each", tensor.name,
                                 to_string(tensor.type), tensor.bytes, most->count, std::uint64_t{1} << windows.shift);
  if (most->count > surplus) {
    text += fmt::format(", and {} bytes of it would fit", std::uint64_t{most->count - surplus} << windows.shift);
  }
  return text;
}

}  // namespace

std::uint64_t window_bytes(const Target& target) {
  return std::bit_floor(most_bound(target));
}

Windows windows_of(const Program& program, const Target& target, const Dispatch& dispatch) {
  Windows windows;
  const auto larger = [&](const Operand& operand) { return needs_windows(program, target, operand); };
  if (std::ranges::none_of(dispatch.operands, larger)) return windows;
  windows.shift = static_cast<std::uint32_t>(std::countr_zero(window_bytes(target)));
  auto next = static_cast<std::uint32_t>(dispatch.operands.size());
  std::map<TensorId, std::uint32_t> rest;
  for (const Operand& operand : dispatch.operands) {
    OperandWindows& of = windows.operands.emplace_back();
    if (!larger(operand)) continue;
    of.tensor = program.tensors[operand.tensor].name;
    of.count = operand.address ? 0 : windows_in(program.tensors[operand.tensor].bytes, windows.shift);
    if (of.count == 0) continue;
    const auto [found, fresh] = rest.try_emplace(operand.tensor, next);
    of.rest = found->second;
    if (fresh) next += of.count - 1;
  }
  return windows;
}

std::size_t bindings(const Dispatch& dispatch) {
  std::size_t end = dispatch.operands.size();
  for (const OperandWindows& of : dispatch.windows.operands) {
    if (of.count > 1) end = std::max<std::size_t>(end, of.rest + of.count - 1);
  }
  return end;
}

std::size_t bindings(const Program& program, const Target& target, const Dispatch& dispatch) {
  Dispatch bound;
  bound.operands = dispatch.operands;
  bound.windows = windows_of(program, target, bound);
  return bindings(bound);
}

std::vector<BoundPart> bound_parts(const Program& program, const Dispatch& dispatch) {
  std::vector<BoundPart> parts(bindings(dispatch));
  const Windows& windows = dispatch.windows;
  for (std::size_t i = 0; i < dispatch.operands.size(); ++i) {
    const std::uint64_t bytes = program.tensors[dispatch.operands[i].tensor].bytes;
    parts[i] = {i, 0, bytes};
    if (windows.operands.empty() || windows.operands[i].count == 1) continue;
    const std::uint64_t window = std::uint64_t{1} << windows.shift;
    parts[i].bytes = std::min(bytes, window);
    for (std::uint32_t w = 1; w < windows.operands[i].count; ++w) {
      const std::uint64_t offset = w * window;
      parts[windows.operands[i].rest + w - 1] = {i, offset, std::min(bytes - offset, window)};
    }
  }
  return parts;
}

void check_bindings(const Program& program, const Target& target, const Dispatch& dispatch) {
  check_elements(program, dispatch);
  check_texels(program, target, dispatch);
  Dispatch bound;
  bound.operands = dispatch.operands;
  bound.windows = windows_of(program, target, bound);
  const std::size_t got = bindings(bound);
  if (got <= target.max_storage_buffers) return;
  std::string text =
      fmt::format("expected at most {} storage buffers, the device's limit, got {}", target.max_storage_buffers, got);
  if (bound.windows.operands.empty()) fail(dispatch.label, text);
  text += largest_share(program, bound, bound.windows, got - target.max_storage_buffers);
  fail_beyond_limit(dispatch.label, text, smaller_tensors);
}

}  // namespace halfstep::plan
