#include "step/stages.h"

#include <algorithm>

namespace halfstep::step {

namespace buffers = state::buffers;

std::vector<Chunk> cut(const plan::Target& target, const state::Parts& parts, std::uint64_t quads,
                       std::span<const BoundQuads> bound) {
  // Whole parameters' alignments, so that every chunk starts where a binding may. Parts begin at such places too.
  constexpr std::uint64_t unit = 128 / 4;
  std::vector<Chunk> chunks;
  for (std::uint64_t first = 0; first < quads; first += chunks.back().count) {
    std::uint64_t count = quads - first;
    for (const BoundQuads& of : bound) {
      const std::uint64_t most = std::max(target.max_storage_range / of.quad_bytes / unit, std::uint64_t{1}) * unit;
      count = std::min({count, most, parts.left(of.buffer, of.first + first * of.quad_bytes) / of.quad_bytes});
    }
    chunks.push_back({first, count});
  }
  return chunks;
}

std::uint64_t StageContext::quad_bytes(plan::BufferId buffer) const {
  const bool computed = buffer == buffers::weights || buffer == buffers::gradients;
  const DType dtype = computed ? weights.compute : buffer == buffers::moments ? weights.moments : DType::f32;
  return 4 * static_cast<std::uint64_t>(bytes(dtype));
}

std::vector<Chunk> StageContext::trained_chunks(std::span<const plan::BufferId> bound) const {
  std::vector<BoundQuads> quads;
  for (const plan::BufferId buffer : bound) quads.push_back({buffer, 0, quad_bytes(buffer)});
  return cut(builder.target(), parts, layout.parameters.trained_elements() / 4, quads);
}

std::vector<Update> StageContext::updates(const state::ParameterRun& run, std::span<const plan::BufferId> bound) const {
  std::vector<Update> result;
  if (run.training.frozen) return result;
  const std::uint32_t states = run.training.states;
  for (const state::Part& part : layout.parts(run)) {
    std::vector<BoundQuads> quads;
    for (const plan::BufferId buffer : bound) {
      const std::uint64_t each = quad_bytes(buffer);
      if (buffer == buffers::moments) {
        quads.push_back({buffer, part.first_moment / 4 * each, states * each});
      } else {
        quads.push_back({buffer, (buffer == buffers::masters ? part.first_master : part.first) / 4 * each, each});
      }
    }
    for (const Chunk& chunk : cut(builder.target(), parts, part.count / 4, quads)) {
      result.push_back({.quads = {part.first / 4 + chunk.first, chunk.count},
                        .first_master = part.first_master / 4 + chunk.first,
                        .first_moment = part.first_moment / 4 + chunk.first * states});
    }
  }
  return result;
}

std::vector<Update> StageContext::updates(std::span<const plan::BufferId> bound) const {
  std::vector<Update> result;
  if (!layout.shard) {
    for (const Chunk& chunk : trained_chunks(bound)) result.push_back({chunk, chunk.first});
    return result;
  }
  for (const state::ParameterRun& run : layout.parameters.runs()) {
    const std::vector<Update> of_run = updates(run, bound);
    result.insert(result.end(), of_run.begin(), of_run.end());
  }
  return result;
}

std::vector<Chunk> StageContext::state_chunks() const {
  std::vector<Chunk> result;
  for (const Chunk& range : updated_states) {
    const std::uint64_t first = 16 * range.first;
    const BoundQuads bound[] = {{buffers::states, first, 16}, {next_states.buffer, next_states.offset + first, 16}};
    for (const Chunk& chunk : cut(builder.target(), parts, range.count, bound)) {
      result.push_back({range.first + chunk.first, chunk.count});
    }
  }
  return result;
}

plan::TensorId StageContext::gradients(const Chunk& chunk) const {
  const std::uint64_t each = gradient_quad_bytes();
  return builder.place_bytes("gradients", chunk.count * each, {buffers::gradients, chunk.first * each});
}

}  // namespace halfstep::step
