#pragma once

#include <halfstep/trainer_options.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "graph/ir.h"
#include "plan/program.h"
#include "state/buffers.h"
#include "state/parts.h"
#include "state/store_spec.h"
#include "step/share.h"

/// The stages of a training step, which run in the order of the numbers that their files begin with. Each appends
/// dispatches to a program. Numbers leave gaps for new stages.
namespace halfstep::step {

/// How a batch of bytes becomes an input: value = byte * factor + offset, by channel (all four alike for more than
/// four).
struct SampleFeed {
  plan::TensorId state;    ///< for the noise of the augmentation
  plan::TensorId indices;  ///< u32: of the whole step's batch
  plan::TensorId bytes;
  plan::TensorId samples;   ///< the input
  std::uint32_t first = 0;  ///< place in `indices` of the first sample
  std::uint32_t place = 0;  ///< its place in the batch of all ranks: keys the augmentation
  Shape stored{};           ///< of a sample in the set
  std::array<float, 4> factor{};
  std::array<float, 4> offset{};
  Augmentation augmentation{};
};

/// How a batch of integers becomes an input of u32, or one of f32 a floating one.
struct ElementFeed {
  plan::TensorId indices;  ///< u32: of the whole step's batch
  plan::TensorId elements;
  plan::TensorId input;
  ElementType type;
  std::uint32_t sample_size;        ///< elements of a sample
  std::uint32_t first = 0;          ///< place in `indices` of the first sample
  std::uint32_t first_element = 0;  ///< of sample 0
  std::uint32_t stride;             ///< elements from one sample to the next
  /// A mean and a factor for each of `channels`, which repeat along the sample: x becomes (x - mean) * factor.
  std::optional<plan::TensorId> normalisation{};
  std::uint32_t channels = 1;
};

/// Loop rounds that each of the two passes of resizing (shaders/data/resize.glsl) takes for a pixel, where the axis
/// that it runs along goes from `pixels` to `places`.
std::int64_t resize_rounds(std::int64_t pixels, std::int64_t places);

/// 10. Gathers, normalises and casts a batch, or a micro-batch of the step's; resizes it before where its samples are
/// of another size than the input.
void feed_samples(plan::ProgramBuilder& builder, const SampleFeed& feed);
/// 10. The same of elements that are not bytes to be normalised.
void feed_elements(plan::ProgramBuilder& builder, const ElementFeed& feed);
/// 10. Casts an input's values, given as f32 or u32.
void feed_values(plan::ProgramBuilder& builder, plan::TensorId values, plan::TensorId input);

/// 20. The operators, forward or backward, that `wanted` values depend on. `lowered` says which were lowered before,
/// and is brought up to date. `lower` is called for each.
void run_graph(const graph::Ir& ir, std::span<const graph::ValueId> wanted, std::vector<bool>& lowered,
               const std::function<void(const graph::Node&)>& lower);

/// Quads of the parameter stores that one dispatch can bind: from first to first + count.
struct Chunk {
  std::uint64_t first;
  std::uint64_t count;
};
/// What a dispatch binds beside such quads: `quad_bytes` for each, those of quad 0 at `first` in the buffer.
struct BoundQuads {
  plan::BufferId buffer;
  std::uint64_t first;
  std::uint64_t quad_bytes;
};
/// Divides `quads` into chunks of which a dispatch can bind all of these: each within the device's limit for a binding,
/// and in one part of its buffer.
std::vector<Chunk> cut(const plan::Target& target, const state::Parts& parts, std::uint64_t quads,
                       std::span<const BoundQuads> bound);

/// What a stage found in the gradients that later ones read: of each block of gradient_scales a word.
struct Findings {
  std::optional<plan::TensorId> largest{};  ///< magnitude, as the bits of f32
  std::optional<plan::TensorId> norms{};    ///< of gradients as they are stored
};

/// Weights that one dispatch updates, in quads.
struct Update {
  Chunk quads;                     ///< over all parameters
  std::uint64_t first_master = 0;  ///< in the buffer of the weights that are updated
  std::uint64_t first_moment = 0;  ///< in that of moments
};

struct CountedRows;

/// What the stages after a backward pass work on.
struct StageContext {
  plan::ProgramBuilder& builder;
  plan::TensorId state;  ///< a state::StepState, with the OptimizerStates that follow it
  const state::StoreLayout& layout;
  const state::Parts& parts;  ///< of a store of this layout
  const TrainerOptions& options;
  Share share;                            ///< of this rank
  state::WeightStorage weights;           ///< of the options' precision
  std::uint32_t micro_batch;              ///< of the step, the one whose backward pass was last
  plan::Region next_states;               ///< what the states become if the step is applied
  std::span<const Chunk> updated_states;  ///< quads of the states that have a next value, in their order
  const CountedRows* counted;             ///< StepGraph::counted; nullptr: micro-batches count alike
  std::span<const std::uint64_t> counts;  ///< where the report has that number, of each micro-batch
  Findings& found;

  /// Micro-batches that gradients are means over: of all ranks that exchange them.
  std::uint32_t all_micro_batches() const { return share.reported(); }
  /// Where ranks exchange the states' next values.
  plan::Region exchanged_states() const { return {state::buffers::exchange, state::exchange_places::states(layout)}; }

  /// The chunks of all trained weights, where a dispatch binds what these buffers have of them.
  std::vector<Chunk> trained_chunks(std::span<const plan::BufferId> bound) const;
  /// Those of what is updated here, which are all trained weights unless ranks share them out; of one run, or of all.
  /// Only those of a run bind moments.
  std::vector<Update> updates(const state::ParameterRun& run, std::span<const plan::BufferId> bound) const;
  std::vector<Update> updates(std::span<const plan::BufferId> bound) const;
  /// The chunks of all updated states and of what they become.
  std::vector<Chunk> state_chunks() const;
  /// Bytes that one of these buffers has of a quad of weights; of each of its states, if it is that of moments.
  std::uint64_t quad_bytes(plan::BufferId buffer) const;
  std::uint64_t gradient_quad_bytes() const { return quad_bytes(state::buffers::gradients); }
  plan::TensorId gradients(const Chunk& chunk) const;
  /// The weights that are updated: f32 masters, or where there are none the weights that operators read.
  plan::BufferId updated_weights() const { return weights.copy ? state::buffers::masters : state::buffers::weights; }
};

/// 30. Adds the gradients of a micro-batch, those of the parameters in `quads`, to the sums of those before it, in f32.
/// After the last one, stores the means over all in place of the gradients, rounded like them; where there are other
/// ranks, leaves the sums where the host exchanges them. A number that is not finite stays so, and one that is too
/// large for its tensor's scale too.
void accumulate_gradients(const StageContext& step, const Chunk& quads);
/// The kernel of 30, on sums that are in `exchange`: stores their means in place of the gradients.
void store_means(const StageContext& step, const Chunk& chunk);

/// 35. Where there are other ranks: leaves the next values of updated states where the host exchanges them.
void offer_states(const StageContext& step);
/// 35. The step goes on when the host has exchanged the sums: stores the means over all ranks' micro-batches in place
/// of the gradients, and those of updated states in place of their next values.
void take_exchanged(const StageContext& step);

/// Blocks of the gradients that are updated here, which one dispatch looks at.
struct Blocks {
  struct Push {
    std::uint32_t first_block;
    std::uint32_t count;
  };
  plan::TensorId gradients;
  Push push;
  plan::Access access;  ///< to what is found, all of which is one tensor
};
std::vector<Blocks> blocks_of(const StageContext& step);
/// A tensor of what is found: a word for each block. Where ranks share out the optimizers' states, it lies `shared_at`
/// in the buffer of what they exchange.
plan::TensorId place_found(const StageContext& step, const char* name, DType dtype, std::uint64_t shared_at);

/// 40. Raises StepState::overflow where a gradient is not finite. Where gradients have scales of their own, finds the
/// largest magnitudes.
void check_gradients(const StageContext& step);

/// 42. Where the norm of all gradients is wanted: finds the norms of their blocks.
void square_gradients(const StageContext& step);

/// 45. Where ranks share out the optimizers' states: the step goes on when each of them knows what was found in the
/// gradients of all.
void share_findings(const StageContext& step);

/// 50. Where gradients have scales of their own: decides which tensors skip the update, and chooses each tensor's next
/// scale.
void choose_scales(const StageContext& step);

/// What kernels with step/block_scales.glsl read from the blocks. Where there are none, `other` is bound and not read.
plan::Operand read_blocks(const StageContext& step, plan::TensorId other);

/// 60. Sets StepState::clip so that the norm of all gradients together, without those of skipped tensors, is at most
/// TrainerOptions::clip_norm, and StepState::gradient_norm to what it was.
void clip_gradients(const StageContext& step);

/// 70. Updates all weights, except those of skipped tensors, unless the step overflowed.
void update_weights(const StageContext& step);

/// 75. Limits all updated weights to TrainerOptions::weight_limit.
void limit_weights(const StageContext& step);

/// 77. Where ranks share out the optimizers' states: the step goes on when each of them has all updated weights.
void gather_weights(const StageContext& step);

/// 80. Moves the averages of all updated weights towards the weights.
void average_weights(const StageContext& step);

/// 90. Gives states their next values, unless the step overflowed.
void update_states(const StageContext& step);

/// 95. Writes the report, counts the step and sets the next step's loss scale and rates.
void rescale(const StageContext& step);

/// 97. Keeps the report, which has `bytes`, beside those of the runs before. The copies follow it in its buffer.
void keep_report(plan::ProgramBuilder& builder, std::uint64_t bytes);

using Stage = void (*)(const StageContext& step);

/// What follows the backward pass of a step's last micro-batch, in order. A stage that the options do not ask for adds
/// nothing; one with an option of its own refuses values that it cannot have.
constexpr auto update_stages = std::to_array<Stage>({take_exchanged, check_gradients, square_gradients, share_findings,
                                                     choose_scales, clip_gradients, update_weights, limit_weights,
                                                     gather_weights, average_weights, update_states, rescale});

}  // namespace halfstep::step
