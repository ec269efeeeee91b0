#pragma once

#include <halfstep/data.h>
#include <halfstep/optimizer.h>
#include <halfstep/precision.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/ir.h"
#include "plan/program.h"
#include "state/parameters.h"

/// The numbered stages of a training step, each in the file of its number. Each appends dispatches to a program.
namespace halfstep::step {

/// How a batch of bytes becomes inputs: value = byte * factor + offset, by channel (all four alike for more than four).
struct SampleFeed {
  plan::TensorId state;    ///< for the noise of the augmentation
  plan::TensorId indices;  ///< u32: of the whole step's batch
  plan::TensorId bytes;
  plan::TensorId label_words;
  plan::TensorId samples;   ///< the input
  plan::TensorId labels;    ///< the input
  std::uint32_t first = 0;  ///< place in the step's batch, and in `indices`, of the first sample
  std::uint32_t samples_in_set = 0;
  Shape stored{};  ///< of a sample in the set
  std::array<float, 4> factor{};
  std::array<float, 4> offset{};
  Augmentation augmentation{};
};

/// Loop rounds that each of the two passes of resizing (shaders/data/resize.glsl) takes for a pixel, where the axis
/// that it runs along goes from `pixels` to `places`.
std::int64_t resize_rounds(std::int64_t pixels, std::int64_t places);

/// 1. Gathers, normalises and casts a batch, or a micro-batch of the step's; resizes it before where its samples are of
/// another size than the input.
void feed_samples(plan::ProgramBuilder& builder, const SampleFeed& feed);
/// 1. Casts an input's values, given as f32 or u32.
void feed_values(plan::ProgramBuilder& builder, plan::TensorId values, plan::TensorId input);

/// 2. The operators, forward or backward, that `wanted` values depend on. `lowered` says which were lowered before, and
/// is brought up to date. `lower` is called for each.
void run_graph(const graph::Ir& ir, std::span<const graph::ValueId> wanted, std::vector<bool>& lowered,
               const std::function<void(const graph::Node&)>& lower);

/// The stores that hold all parameters, as buffers of a program.
struct ParameterBuffers {
  plan::BufferId weights;  ///< what operators read
  plan::BufferId masters;  ///< f32; the same as `weights` where there is no separate copy
  plan::BufferId gradients;
  plan::BufferId moments;
  plan::BufferId gradient_sums;  ///< f32: over the micro-batches of a step, where there are several
  plan::BufferId averages;       ///< f32: of the weights over steps, where they are kept
  plan::BufferId scales;         ///< of gradients: see gradient_scales.h
};

/// A micro-batch of a step.
struct MicroBatch {
  std::uint32_t index = 0;
  std::uint32_t count = 1;  ///< in the step
};

/// 2. Adds the gradients of a micro-batch to the sums of those before it, in f32; after the last one, puts the means
/// over all in the place of the gradients, rounded as these are. A number that is not finite stays so, and one that is
/// too large for its tensor's scale too.
void accumulate_gradients(plan::ProgramBuilder& builder, const state::ParameterLayout& layout,
                          const state::WeightForm& form, const ParameterBuffers& buffers, MicroBatch micro_batch);

/// 3. Raises StepState::overflow where a gradient is not finite.
void check_gradients(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                     const state::WeightForm& form, const ParameterBuffers& buffers);

/// 3. The same where gradients have scales of their own; and says of each tensor whether it is left out, and what its
/// next scale is.
void choose_scales(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                   const state::WeightForm& form, const ParameterBuffers& buffers);

/// What kernels with step/block_scales.glsl read from the blocks; where there are none, `other` is bound and not read.
plan::Operand read_blocks(plan::ProgramBuilder& builder, const state::ParameterLayout& layout,
                          const state::WeightForm& form, const ParameterBuffers& buffers, plan::TensorId other);

/// 3. Sets StepState::clip so that all gradients together, but for those that are left out, have a norm of at most
/// `limit`.
void clip_gradients(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                    const state::WeightForm& form, const ParameterBuffers& buffers, float limit);

/// 4. Updates all weights, unless the step overflowed, but for those of tensors that are left out.
void update_weights(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                    const Precision& precision, const ParameterBuffers& buffers, const Optimizer& optimizer);

/// 4. Moves the averages of all weights that were updated towards these: after update_weights.
void average_weights(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                     const state::WeightForm& form, const ParameterBuffers& buffers, float decay);

/// 4. Gives all states their next values, unless the step overflowed.
void update_states(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                   plan::BufferId states, plan::Region next);

/// 5. Writes the report, counts the step and sets the next one's loss scale and rate.
void rescale(plan::ProgramBuilder& builder, plan::TensorId state, plan::TensorId schedule, std::uint32_t rates,
             plan::TensorId report, const Precision& precision, const Optimizer& optimizer);

/// A stretch of the parameter stores that one dispatch can bind: quads from first to first + count.
struct Stretch {
  std::uint64_t first;
  std::uint64_t count;
};
/// Cuts `quads` so that `widest` bytes a quad stay within what the device binds.
std::vector<Stretch> cut(const plan::Target& target, std::uint64_t quads, std::uint64_t widest);

}  // namespace halfstep::step
