#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "step/stages.h"
#include "step/step_program.h"

namespace halfstep::step {
namespace {

/// One of a step's micro-batches, or what ranks made of them.
struct Turn {
  bool first = false;  ///< there are no sums yet
  bool last = false;   ///< the sums become means
  bool part = false;   ///< the sums have these gradients already
};

/// Where the report has how many rows of each micro-batch count.
struct Counts {
  std::optional<plan::TensorId> place{};  ///< from the first number to the last
  std::uint32_t apart = 0;                ///< numbers from one to the next
  float rows = 0;                         ///< of a micro-batch
};

Counts counts_of(const StageContext& step) {
  if (step.counted == nullptr) return {};
  const std::int64_t most = step.builder.target().max_rounds;
  if (std::int64_t{step.all_micro_batches()} > most) {
    fail("trainer", fmt::format("expected at most {} micro-batches of a loss with labels, since this driver ends loops "
                                "after so many rounds, got {}",
                                most, step.all_micro_batches()));
  }
  const std::uint64_t first = step.counts.front();
  const std::uint64_t each = step.counts.size() > 1 ? step.counts[1] - first : sizeof(float);
  const plan::Region place{state::buffers::report, first};
  return {.place = step.builder.place_bytes("rows that count", step.counts.back() - first + sizeof(float), place),
          .apart = static_cast<std::uint32_t>(each / sizeof(float)),
          .rows = static_cast<float>(step.counted->all)};
}

void accumulate(const StageContext& step, const Chunk& chunk, plan::Region sums_at, const Turn& turn) {
  struct Push {
    std::uint32_t first_quad;
    std::uint32_t quads;
    float micro_batches;
    std::uint32_t micro_batch;
    std::uint32_t counts_apart;
    float rows;
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
  const Counts counts = counts_of(step);
  const auto all = static_cast<float>(step.all_micro_batches());
  builder.dispatch(
      {.label = "accumulate",
       .shader = fmt::format("accumulate.{}", storage(builder.target(), stored)),
       .constants = {local_size, turn.first, turn.last, step.weights.scaled, turn.part, counts.place.has_value()},
       .push = plan::push_bytes(Push{static_cast<std::uint32_t>(chunk.first), static_cast<std::uint32_t>(chunk.count),
                                     all, step.share.first_reported() + step.micro_batch, counts.apart, counts.rows}),
       .operands = {{gradients, of_gradients},
                    {sums, of_sums},
                    counts.place ? plan::Operand{*counts.place, plan::Access::read} : plan::Operand{sums, of_sums}},
       .groups = plan::groups_for(builder.target(), static_cast<std::int64_t>(chunk.count), local_size),
       .rounds = counts.place && turn.last ? std::int64_t{step.all_micro_batches()} : 0});
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
