#pragma once

#include <cstdint>
#include <string>

#include "io/safetensors.h"

/// How far training is through its epochs, as checkpoints record it.
namespace halfstep::train {

/// What an epoch is made of: `samples` / `batch` steps, rounded down. Both are positive, `batch` at most `samples`.
struct EpochSize {
  std::int64_t samples = 0;
  std::int64_t batch = 0;

  std::int64_t steps() const { return samples / batch; }
};

/// Records that `drawn` batches were drawn, counted from the first epoch on.
void note_position(io::Metadata& metadata, const EpochSize& size, std::int64_t drawn);

/// Records that so many batches were asked of a source without epochs, by all ranks.
void note_asked(io::Metadata& metadata, std::int64_t batches);

/// The batches that each of so many ranks has drawn, of all that were asked for according to a checkpoint's metadata,
/// rounded up. A checkpoint that does not say (of an older version) was at `step`. Throws Error that names `file` for a
/// number that cannot be.
std::int64_t drawn_from(const io::Metadata& metadata, const std::string& file, std::int64_t ranks, std::int64_t step);

/// The batches drawn according to a checkpoint's metadata, in epochs of `size`. Whole epochs stay whole; of an epoch in
/// progress the same fraction is done, rounded down to a step. A checkpoint without a position (of an older version)
/// was at `step`. Throws Error that names `file` for a position that cannot be.
std::int64_t position_from(const io::Metadata& metadata, const std::string& file, const EpochSize& size,
                           std::int64_t step);

}  // namespace halfstep::train
