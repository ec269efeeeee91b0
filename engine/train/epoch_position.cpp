#include "train/epoch_position.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "train/metadata_keys.h"

namespace halfstep::train {
namespace {

/// The number of an entry, from `low` to `high`.
std::int64_t number(const io::Metadata& metadata, const std::string& file, const char* key, std::int64_t low,
                    std::int64_t high) {
  const auto found = metadata.find(key);
  const std::string text = found == metadata.end() ? "" : found->second;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= low && value <= high) return value;
  fail(ErrorCode::bad_file, file,
       fmt::format("expected '{}' from {} to {} in its metadata, got '{}'", key, low, high, text));
}

}  // namespace

void note_position(io::Metadata& metadata, const EpochSize& size, std::int64_t drawn) {
  metadata[keys::samples] = std::to_string(size.samples);
  metadata[keys::batch] = std::to_string(size.batch);
  metadata[keys::epoch] = std::to_string(drawn / size.steps());
  metadata[keys::epoch_step] = std::to_string(drawn % size.steps());
}

void note_asked(io::Metadata& metadata, std::int64_t batches) {
  metadata[keys::source_batches] = std::to_string(batches);
}

std::int64_t drawn_from(const io::Metadata& metadata, const std::string& file, std::int64_t ranks, std::int64_t step) {
  if (!metadata.contains(keys::source_batches)) return step;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
  return (number(metadata, file, keys::source_batches, 0, most) + ranks - 1) / ranks;
}

std::int64_t position_from(const io::Metadata& metadata, const std::string& file, const EpochSize& size,
                           std::int64_t step) {
  // Bounds that keep every product below within 64 bits.
  constexpr std::int64_t most_samples = std::int64_t{1} << 32;
  if (!metadata.contains(keys::epoch)) return step;
  EpochSize before;
  before.samples = number(metadata, file, keys::samples, 1, most_samples);
  before.batch = number(metadata, file, keys::batch, 1, before.samples);
  const std::int64_t most_epochs =
      std::numeric_limits<std::int64_t>::max() / 4 / std::max(before.steps(), size.steps());
  const std::int64_t epoch = number(metadata, file, keys::epoch, 0, most_epochs);
  const std::int64_t epoch_step = number(metadata, file, keys::epoch_step, 0, before.steps() - 1);
  std::int64_t here = epoch_step;
  if (before.samples != size.samples || before.batch != size.batch) {
    // In whole numbers: a fraction that is a whole number of steps stays one.
    const auto seen = static_cast<std::uint64_t>(epoch_step * before.batch) * static_cast<std::uint64_t>(size.samples);
    const auto step_samples = static_cast<std::uint64_t>(before.samples) * static_cast<std::uint64_t>(size.batch);
    here = static_cast<std::int64_t>(seen / step_samples);
  }
  return epoch * size.steps() + std::min(here, size.steps() - 1);
}

}  // namespace halfstep::train
