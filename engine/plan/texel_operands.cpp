#include "plan/texel_operands.h"

#include <algorithm>

#include "plan/conflicts.h"
#include "plan/program.h"

namespace halfstep::plan {

void mark_texel_operands(const Program& program, const Target& target, Dispatch& dispatch) {
  constexpr std::uint64_t texel_bytes = 16;
  if (target.max_texels == 0 || !dispatch.windows.operands.empty()) return;
  for (Operand& operand : dispatch.operands) {
    const ProgramTensor& tensor = program.tensors[operand.tensor];
    const bool written =
        std::ranges::any_of(dispatch.operands, [&](const Operand& other) { return conflict(program, operand, other); });
    operand.may_be_texels = !operand.address && !written && !is_narrow(tensor.type.dtype) &&
                            tensor.bytes % texel_bytes == 0 && tensor.bytes / texel_bytes <= target.max_texels;
  }
}

}  // namespace halfstep::plan
