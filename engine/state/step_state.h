#pragma once

#include <cstdint>
#include <vector>

namespace halfstep::state {

/// In StepState::overflow: a gradient is not finite, and the step is skipped.
inline constexpr std::uint32_t not_finite_flag = 1;
/// In StepState::overflow: Precision::stop_on stops the step, which leaves everything as it was before it.
inline constexpr std::uint32_t stopped_flag = 2;

/// What differs from step to step, kept on the device and read and written by the step's own kernels; the host sets it
/// once, before the first step. The shaders' twin is shaders/step/step_state.glsl.
struct StepState {
  float loss_scale = 1;  ///< with the three zeros after it, the gradient of the loss: a scalar tensor
  float padding[3] = {};
  float rate = 0;                   ///< of this step, of the trainer's own optimizer
  std::uint32_t overflow = 0;       ///< not 0 where this step makes no update: not_finite_flag, stopped_flag
  std::uint32_t good_steps = 0;     ///< applied in a row since the loss scale last changed
  std::uint32_t applied = 0;        ///< updates made, of which 2^32 - 1 are counted
  std::uint32_t attempted[2] = {};  ///< steps run, low word first: what the noise counts
  std::uint32_t skipped = 0;        ///< steps that made no update
  float unused[2] = {};             ///< files of older versions have Adam's powers of betas here
  std::uint32_t seed[2] = {};  ///< low word first
  float clip = 1;  ///< what this step's gradients are multiplied by so that their norm stays within the limit
  std::uint32_t tensor_updates_skipped =
      0;                         ///< updates of single tensors that were left out of steps that were not skipped
  std::int32_t rate_offset = 0;  ///< the schedule entry of this step minus the updates made
  float gradient_norm = 0;       ///< of this step, before clipping
  std::uint32_t reserved = 0;
};
static_assert(sizeof(StepState) == 80);

/// What differs from step to step for an optimizer other than the trainer's own. They follow the StepState in its
/// buffer, in the order of StoreLayout::optimizers from the second on.
struct OptimizerState {
  float rate = 0;        ///< of this step
  float unused[3] = {};  ///< files of older versions have Adam's powers of betas here
};
static_assert(sizeof(OptimizerState) == 16);

/// All of a training that differs from step to step and is no tensor.
struct RunState {
  StepState step;
  std::vector<OptimizerState> optimizers;  ///< other than the trainer's own
};

}  // namespace halfstep::state
