#include <fmt/format.h>

#include "state/gradient_scales.h"
#include "step/stages.h"

namespace halfstep::step {
namespace {

void check(const StageContext& step, const Chunk& chunk) {
  constexpr std::uint32_t quads_each = 8;  // as in check.comp
  plan::ProgramBuilder& builder = step.builder;
  const std::uint32_t local_size = flat_local_size(builder.target());
  const auto invocations = static_cast<std::int64_t>((chunk.count + quads_each - 1) / quads_each);
  builder.dispatch({.label = "check",
                    .shader = fmt::format("check.{}", storage(builder.target(), step.weights.compute)),
                    .constants = {local_size},
                    .push = plan::push_bytes(static_cast<std::uint32_t>(chunk.count)),
                    .operands = {{step.state, plan::Access::read_write}, {step.gradients(chunk), plan::Access::read}},
                    .groups = plan::groups_for(builder.target(), invocations, local_size)});
}

/// The largest magnitude of each block, in the place of check().
void find_largest(const StageContext& step, const Blocks& blocks) {
  plan::ProgramBuilder& builder = step.builder;
  const std::uint32_t local_size = flat_local_size(builder.target());
  builder.dispatch({.label = "check",
                    .shader = fmt::format("largest.{}", storage(builder.target(), step.weights.compute)),
                    .constants = {local_size},
                    .push = plan::push_bytes(blocks.push),
                    .operands = {{step.state, plan::Access::read_write},
                                 {blocks.gradients, plan::Access::read},
                                 {*step.found.largest, blocks.access}},
                    .groups = plan::groups_for(builder.target(), blocks.push.count, local_size)});
}

}  // namespace

std::vector<Blocks> blocks_of(const StageContext& step) {
  constexpr std::uint64_t block_quads = state::gradient_scales::block_elements / 4;
  std::vector<Blocks> result;
  const plan::BufferId bound[] = {state::buffers::gradients};
  for (const Update& update : step.updates(bound)) {
    const Chunk& chunk = update.quads;
    result.push_back({.gradients = step.gradients(chunk),
                      .push = {static_cast<std::uint32_t>(chunk.first / block_quads),
                               static_cast<std::uint32_t>(chunk.count / block_quads)},
                      .access = result.empty() ? plan::Access::write : plan::Access::read_write});
  }
  return result;
}

plan::TensorId place_found(const StageContext& step, const char* name, DType dtype, std::uint64_t shared_at) {
  const TensorType type{dtype, {static_cast<std::int64_t>(state::gradient_scales::blocks(step.layout.parameters))}};
  if (!step.layout.shard) return step.builder.tensor(name, type);
  return step.builder.place(name, type, {state::buffers::exchange, shared_at});
}

void check_gradients(const StageContext& step) {
  if (!step.weights.scaled) {
    const plan::BufferId bound[] = {state::buffers::gradients};
    for (const Update& update : step.updates(bound)) check(step, update.quads);
    return;
  }
  step.found.largest = place_found(step, "largest gradients", DType::u32, state::exchange_places::largest(step.layout));
  for (const Blocks& blocks : blocks_of(step)) find_largest(step, blocks);
}

}  // namespace halfstep::step
