#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/lowering.h"

namespace halfstep::ops {

/// `value` as a 32-bit index for shaders. Throws Error if it does not fit.
std::uint32_t index32(const plan::Lowering& out, std::int64_t value);

/// The variant of a shader for tensors of `dtype` on this device: "slice.packed".
std::string variant(const plan::Lowering& out, std::string_view shader, DType dtype);

/// How many terms a kernel adds up one by one in f32, about. Each addition is rounded to the unit of the sum: so many
/// equal terms are off by up to 8e-5 of their sum, and half a million by 5e-3. More are cut into parts.
inline constexpr std::int64_t longest_sum = 8192;

/// More of a dispatch; see the members of plan::Dispatch.
struct Work {
  double flops = 0;
  std::int64_t rounds = 0;
  bool mixes = false;
  bool push_is_known = false;
};

/// A dispatch with one invocation for each of `count` quads. `constants` are specialization constants 1, 2, ...
template <typename Push>
void dispatch_flat(plan::Lowering& out, const std::string& shader, std::int64_t count, const Push& push,
                   const std::vector<plan::Operand>& operands, const std::vector<std::uint32_t>& constants = {},
                   const Work& work = {}) {
  const std::uint32_t local_size = flat_local_size(out.target());
  std::vector<std::uint32_t> all{local_size};
  all.insert(all.end(), constants.begin(), constants.end());
  out.dispatch({.label = {},
                .shader = shader,
                .constants = all,
                .push = plan::push_bytes(push),
                .push_is_known = work.push_is_known,
                .operands = operands,
                .groups = plan::groups_for(out.target(), count, local_size),
                .rounds = work.rounds,
                .mixes = work.mixes,
                .flops = work.flops});
}

/// The expression that stores the quads that a kernel computes for `result`, which is operand number `operand`. Other
/// operators may later be fused into it; the arguments of their reads and writes start at `first_argument`.
plan::Expression result_expression(const plan::Lowering& out, plan::TensorId result, std::uint32_t operand,
                                   std::uint32_t first_argument);

}  // namespace halfstep::ops
