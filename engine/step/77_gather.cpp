#include "step/stages.h"

namespace halfstep::step {
namespace {

/// Copies the weights of elements from `first` to before `end`, of those that are gathered together, as operators read
/// them: to where the host exchanges them, or back.
void copy_weights(const StageContext& step, const state::Shared& of, std::uint64_t first, std::uint64_t end,
                  bool back) {
  const DType dtype = of.read_masters ? DType::f32 : step.weights.compute;
  const auto width = static_cast<std::uint64_t>(bytes(dtype));
  const plan::BufferId buffer = of.read_masters ? state::buffers::masters : state::buffers::weights;
  const std::uint64_t here = of.read_masters ? step.layout.master_place(of.first) : of.first;
  const BoundQuads bound[] = {{buffer, (here + first - of.first) * width, 4 * width}};
  for (const Chunk& chunk : cut(step.builder.target(), step.parts, (end - first) / 4, bound)) {
    const std::uint64_t from = first - of.first + 4 * chunk.first;
    const plan::TensorId weights =
        step.builder.place_bytes("weights", 4 * chunk.count * width, {buffer, (here + from) * width});
    const plan::TensorId gathered = step.builder.place_bytes("gathered weights", 4 * chunk.count * width,
                                                             {state::buffers::exchange, 4 * of.first + from * width});
    step.builder.alias(back ? weights : gathered, back ? gathered : weights, "gather");
  }
}

}  // namespace

void gather_weights(const StageContext& step) {
  if (!step.layout.shard) return;
  const state::Shard& shard = *step.layout.shard;
  for (const state::Shared& of : shard.gathered()) {
    copy_weights(step, of, of.own_first(shard.rank()), of.own_end(shard.rank()), false);
  }
  step.builder.await();
  for (const state::Shared& of : shard.gathered()) copy_weights(step, of, of.first, of.first + of.count, true);
}

}  // namespace halfstep::step
