#include "step/stages.h"

#include <algorithm>

namespace halfstep::step {

std::vector<Chunk> cut(const plan::Target& target, std::uint64_t quads, std::uint64_t widest) {
  // Whole parameters' alignments, so that every chunk starts where a binding may.
  constexpr std::uint64_t unit = 128 / 4;
  const std::uint64_t most = std::max(target.max_storage_range / widest / unit, std::uint64_t{1}) * unit;
  std::vector<Chunk> chunks;
  for (std::uint64_t first = 0; first < quads; first += most) {
    chunks.push_back({first, std::min(most, quads - first)});
  }
  return chunks;
}

std::vector<Chunk> StageContext::trained_chunks(std::uint64_t widest) const {
  return cut(builder.target(), layout.parameters.trained_elements() / 4, widest);
}

std::vector<Update> StageContext::updates(const state::ParameterRun& run, std::uint64_t widest) const {
  std::vector<Update> result;
  if (run.training.frozen) return result;
  for (const state::Part& part : layout.parts(run)) {
    for (const Chunk& chunk : cut(builder.target(), part.count / 4, widest)) {
      result.push_back({.quads = {part.first / 4 + chunk.first, chunk.count},
                        .first_master = part.first_master / 4 + chunk.first,
                        .first_moment = part.first_moment / 4 + chunk.first * run.training.states});
    }
  }
  return result;
}

std::vector<Update> StageContext::updates(std::uint64_t widest) const {
  std::vector<Update> result;
  if (!layout.shard) {
    for (const Chunk& chunk : trained_chunks(widest)) result.push_back({chunk, chunk.first});
    return result;
  }
  for (const state::ParameterRun& run : layout.parameters.runs()) {
    const std::vector<Update> of_run = updates(run, widest);
    result.insert(result.end(), of_run.begin(), of_run.end());
  }
  return result;
}

plan::TensorId StageContext::gradients(const Chunk& chunk) const {
  const std::uint64_t quad_bytes = gradient_quad_bytes();
  return builder.place_bytes("gradients", chunk.count * quad_bytes,
                             {state::buffers::gradients, chunk.first * quad_bytes});
}

}  // namespace halfstep::step
