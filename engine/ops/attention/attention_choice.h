#pragma once

#include <string_view>
#include <vector>

#include "ops/attention/attention_kernels.h"
#include "plan/choice.h"

/// Attention as a plan::Choice: what to time, and what admits a kernel.
namespace halfstep::ops {

/// The choice between `kernels`. The two passes of the gradients share one, which times all three passes.
plan::Choice attention_choice(const plan::Lowering& out, AttentionPass pass, const AttentionTensors& tensors,
                              const AttentionSettings& settings, const std::vector<AttentionKernel>& kernels);

/// The checks that a kernel for choices of this kind must pass: the result and its three gradients, against double; in
/// f16 also two of them where what they are sums of is subnormal. Throws Error if it is no such kind.
std::vector<plan::Trial> attention_checks(std::string_view kind);

}  // namespace halfstep::ops
