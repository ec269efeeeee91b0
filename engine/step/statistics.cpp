#include "step/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "step/stages.h"

namespace halfstep::step {
namespace {

enum Word : std::size_t {
  smallest,
  largest,
  sum,
  sum_of_large,
  squares_of_small,
  squares_of_medium,
  squares_of_large,
  zeros,
  subnormals,
  large,
  infinities,
  nans,
  bin_0,
  scale = statistics_words
};

std::int32_t word(std::span<const std::byte> row, std::size_t index) {
  std::int32_t value;
  std::memcpy(&value, row.data() + 4 * index, sizeof value);
  return value;
}

float number(std::span<const std::byte> row, std::size_t index) {
  return std::bit_cast<float>(word(row, index));
}

std::uint64_t count(std::span<const std::byte> row, std::size_t index) {
  return static_cast<std::uint64_t>(word(row, index));
}

/// The sums of magnitudes and of squares that shaders/step/statistics.comp and norm.glsl have added up apart.
double sum_of_magnitudes(std::span<const std::byte> row) {
  return static_cast<double>(number(row, sum)) + static_cast<double>(number(row, sum_of_large)) * 0x1p80;
}

double sum_of_squares(std::span<const std::byte> row) {
  return static_cast<double>(number(row, squares_of_small)) * 0x1p-192 +
         static_cast<double>(number(row, squares_of_medium)) +
         static_cast<double>(number(row, squares_of_large)) * 0x1p160;
}

}  // namespace

void look_at(plan::ProgramBuilder& builder, plan::TensorId tensor, plan::TensorId row, plan::TensorId state,
             const StopOn& stop) {
  struct Push {
    std::uint32_t quads;
    std::uint32_t quads_per_row;
    std::uint32_t columns;
    std::uint32_t groups;
  };
  struct MergePush {
    std::uint32_t count;
    std::uint32_t scale;
  };
  const TensorType type = builder.info(tensor).type;
  const std::string label = fmt::format("watch {}", builder.info(tensor).name);
  const plan::Layout layout = plan::layout(type.shape);
  const std::uint32_t local_size = flat_local_size(builder.target());
  const std::int64_t share = 8 * std::int64_t{local_size};  // quads that are worth a workgroup
  const std::int64_t most = 4 * std::int64_t{builder.target().wanted_groups};
  // Beside its quads, an invocation of statistics.comp runs loops over words of a row, and one of them over the sums.
  const std::int64_t other_rounds = local_size + 1 + 2 * (plan::divided_up(statistics_words, local_size) + 1);
  const std::int64_t most_quads = (std::int64_t{builder.target().max_rounds} - other_rounds - 1) * local_size;
  const auto groups = static_cast<std::uint32_t>(std::max(std::clamp<std::int64_t>(layout.quads() / share, 1, most),
                                                          plan::divided_up(layout.quads(), most_quads)));
  const plan::TensorId rows =
      builder.tensor(label, {DType::u32, {static_cast<std::int64_t>(groups * statistics_words)}});
  builder.dispatch({.label = label,
                    .shader = fmt::format("statistics.{}", plan::storage(builder.target(), type.dtype)),
                    .constants = {local_size},
                    .push = plan::push_bytes(Push{static_cast<std::uint32_t>(layout.quads()),
                                                  static_cast<std::uint32_t>(layout.quads_per_row()),
                                                  static_cast<std::uint32_t>(layout.columns), groups}),
                    .operands = {{tensor, plan::Access::read}, {rows, plan::Access::write}},
                    .groups = plan::groups_for(builder.target(), std::int64_t{groups} * local_size, local_size),
                    .rounds = plan::divided_up(layout.quads(), std::int64_t{groups} * local_size) + 1 + other_rounds});
  builder.dispatch({.label = label,
                    .shader = "statistics_merge",
                    .constants = {local_size, stop.overflow, stop.invalid},
                    .push = plan::push_bytes(MergePush{groups, builder.stores().scale_of(tensor)}),
                    .operands = {{rows, plan::Access::read},
                                 {row, plan::Access::write},
                                 {state, stop.any() ? plan::Access::read_write : plan::Access::read},
                                 {builder.stores().scales().value_or(rows), plan::Access::read}},
                    .rounds = plan::divided_up(statistics_words, local_size) * (std::int64_t{groups} + 2) + 1});
}

TensorStatistics read_statistics(std::span<const std::byte> row, std::uint64_t elements) {
  TensorStatistics result;
  result.elements = elements;
  result.gradient_scale = number(row, scale);
  result.infinities = count(row, infinities);
  result.nans = count(row, nans);
  const std::uint64_t finite = elements - result.infinities - result.nans;
  if (finite > 0) {
    result.min = number(row, smallest);
    result.max = number(row, largest);
    result.mean_magnitude = sum_of_magnitudes(row) / static_cast<double>(finite);
    result.rms = std::sqrt(sum_of_squares(row) / static_cast<double>(finite));
  }
  result.zeros = count(row, zeros);
  result.subnormals = count(row, subnormals);
  result.large = count(row, large);
  for (std::size_t i = 0; i < TensorStatistics::bins; ++i) result.exponents[i] = count(row, bin_0 + i);
  return result;
}

bool is_bad(std::span<const std::byte> row, const StopOn& stop) {
  return (stop.overflow && count(row, infinities) > 0) || (stop.invalid && count(row, nans) > 0);
}

}  // namespace halfstep::step
