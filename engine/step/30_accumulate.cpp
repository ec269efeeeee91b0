#include <fmt/format.h>

#include <algorithm>

#include "step/stages.h"

namespace halfstep::step {
namespace {

/// One of a step's micro-batches, or what ranks made of them.
struct Turn {
  bool first = false;  ///< there are no sums yet
  bool last = false;   ///< the sums become means
  bool part = false;   ///< the sums have these gradients already
};

void accumulate(const StageContext& step, const Chunk& chunk, plan::Region sums_at, const Turn& turn) {
  struct Push {
    std::uint32_t first_quad;
    std::uint32_t quads;
    float count;
  };
  plan::ProgramBuilder& builder = step.builder;
  const DType stored = step.weights.compute;
  const std::uint32_t local_size = flat_local_size(builder.target());
  const auto elements = static_cast<std::int64_t>(4 * chunk.count);
  const plan::TensorId gradients = builder.place("gradients", {stored, {elements}},
                                                 {state::buffers::gradients, chunk.first * step.gradient_quad_bytes()});
  sums_at.offset += chunk.first * 16;
  const plan::TensorId sums = builder.place("gradient sums", {DType::f32, {elements}}, sums_at);
  const plan::Access of_gradients = turn.part   ? plan::Access::write
                                    : turn.last ? plan::Access::read_write
                                                : plan::Access::read;
  const plan::Access of_sums = turn.part || turn.last ? plan::Access::read
                               : turn.first           ? plan::Access::write
                                                      : plan::Access::read_write;
  builder.dispatch(
      {.label = "accumulate",
       .shader = fmt::format("accumulate.{}", storage(builder.target(), stored)),
       .constants = {local_size, turn.first, turn.last, step.weights.scaled, turn.part},
       .push = plan::push_bytes(Push{static_cast<std::uint32_t>(chunk.first), static_cast<std::uint32_t>(chunk.count),
                                     static_cast<float>(step.all_micro_batches())}),
       .operands = {{gradients, of_gradients}, {sums, of_sums}},
       .groups = plan::groups_for(builder.target(), static_cast<std::int64_t>(chunk.count), local_size)});
}

/// What of `chunk` lies in `within`.
Chunk common_part(const Chunk& chunk, const Chunk& within) {
  const std::uint64_t first = std::max(chunk.first, within.first);
  const std::uint64_t end = std::min(chunk.first + chunk.count, within.first + within.count);
  return {first, end > first ? end - first : 0};
}

}  // namespace

void accumulate_gradients(const StageContext& step, const Chunk& quads) {
  const std::uint32_t own = step.share.count;
  const bool exchanged = step.options.ranks.exchange_gradients();
  if (own == 1 && !exchanged) return;
  const bool first = step.micro_batch == 0;
  const bool last = step.micro_batch + 1 == own;
  const plan::Region exchange{state::buffers::exchange, 0};
  const plan::Region sums{state::buffers::gradient_sums, 0};
  const plan::BufferId bound[] = {state::buffers::gradients, state::buffers::gradient_sums};
  for (const Chunk& trained : step.trained_chunks(bound)) {
    const Chunk chunk = common_part(trained, quads);
    if (chunk.count == 0) continue;
    // What the host reads is written once, whole: on a GPU it is the host's memory.
    accumulate(step, chunk, exchanged && own == 1 ? exchange : sums, {.first = first, .last = last && !exchanged});
    if (!exchanged || !last || own == 1) continue;
    const auto place = [&](plan::Region region) {
      region.offset += chunk.first * 16;
      return step.builder.place_bytes("gradient sums", chunk.count * 16, region);
    };
    step.builder.alias(place(exchange), place(sums), "accumulate");
  }
}

void store_means(const StageContext& step, const Chunk& chunk) {
  accumulate(step, chunk, {state::buffers::exchange, 0}, {.last = true, .part = true});
}

}  // namespace halfstep::step
