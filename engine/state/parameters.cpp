#include "state/parameters.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/philox.h"
#include "base/portable_math.h"
#include "plan/layout.h"

namespace halfstep::state {
namespace {

/// Every parameter starts on a multiple of 256 bytes even in 16 bits: no device asks for a larger binding alignment.
constexpr std::uint64_t parameter_alignment = 128;

/// What makes the draws of first values differ from all others with the same seed.
constexpr std::uint32_t initializer_stream = 2;

/// Uniform on (0, 1], 24 bits.
float unit(std::uint32_t word) {
  return (static_cast<float>(word >> 8) + 0.5F) * 0x1p-24F;
}

/// Uniform on (0, 1), 32 bits.
double fine_unit(std::uint32_t word) {
  return (word + 0.5) * 0x1p-32;
}

/// Two normal values from two random words, by Box and Muller 1958.
std::array<float, 2> normal_pair(std::uint32_t first, std::uint32_t second) {
  const double radius = std::sqrt(-2 * portable::log(fine_unit(first)));
  const double turns = fine_unit(second);
  return {static_cast<float>(radius * portable::cos_of_turns(turns)),
          static_cast<float>(radius * portable::sin_of_turns(turns))};
}

/// Four values from four random words.
std::array<float, 4> draw(const Initializer& initializer, std::array<std::uint32_t, 4> words) {
  const auto [kind, a, b] = initializer;
  switch (kind) {
    case Initializer::Kind::constant:
      return {a, a, a, a};
    case Initializer::Kind::uniform: {
      const auto value = [&](std::uint32_t word) { return a + (b - a) * unit(word); };
      return {value(words[0]), value(words[1]), value(words[2]), value(words[3])};
    }
    case Initializer::Kind::normal: {
      const auto [x0, x1] = normal_pair(words[0], words[1]);
      const auto [x2, x3] = normal_pair(words[2], words[3]);
      return {a + b * x0, a + b * x1, a + b * x2, a + b * x3};
    }
  }
  return {};
}

}  // namespace

ParameterLayout::ParameterLayout(const graph::Ir& ir, std::span<const graph::ValueId> parameters,
                                 std::span<const Training> training) {
  std::vector<graph::ValueId> written(parameters.begin(), parameters.end());
  std::ranges::sort(written);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const graph::Value& value = ir.values[parameters[i]];
    const auto number = std::ranges::lower_bound(written, parameters[i]) - written.begin();
    const std::uint32_t index =
        static_cast<std::uint32_t>(number) + (value.origin == graph::Origin::state ? first_state : 0);
    const std::uint64_t first = padded_elements_;
    entries_.push_back(
        {value.name, value.type, value.initializer, first, moment_elements_, value.stored, index, training[i]});
    if (runs_.empty() || runs_.back().training != training[i]) {
      runs_.push_back({first, 0, moment_elements_, training[i]});
    }
    const auto padded = static_cast<std::uint64_t>(plan::layout(value.type.shape).padded_elements());
    padded_elements_ += (padded + parameter_alignment - 1) / parameter_alignment * parameter_alignment;
    runs_.back().padded_elements = padded_elements_ - runs_.back().first_element;
    const bool wide = !training[i].frozen || training[i].unreached || value.type.dtype == DType::f32;
    if (wide) master_elements_ = padded_elements_;
    if (training[i].frozen) continue;
    trained_elements_ = padded_elements_;
    moment_elements_ += (padded_elements_ - first) * training[i].states;
    count_ += elements(value.type.shape);
  }
  // Kernels count the quads of all parameters, and of all states, in 32 bits.
  constexpr std::uint64_t most = (std::uint64_t{1} << 32) * 4;
  if (const std::uint64_t largest = std::max(padded_elements_, moment_elements_); largest > most) {
    fail(ErrorCode::unsupported, "parameters",
         fmt::format("expected all parameters, or all that the optimizer keeps for them, to have at most {} elements, "
                     "padding included, got {}",
                     most, largest));
  }
}

const ParameterEntry* ParameterLayout::find(std::string_view name) const {
  const auto entry = std::ranges::find(entries_, name, &ParameterEntry::name);
  return entry == entries_.end() ? nullptr : &*entry;
}

WeightStorage weight_storage(const Precision& precision) {
  WeightStorage storage;
  storage.compute = precision.parameters;
  storage.scaled = precision.gradient_scales == GradientScales::per_tensor;
  storage.master = precision.weights == DType::f32;
  storage.copy = storage.master && is_narrow(precision.parameters);
  storage.moments = precision.moments;
  return storage;
}

std::vector<float> initial_values(const ParameterEntry& entry, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(elements(entry.type.shape)));
  const auto key = process::philox_key(seed);
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const auto quad = static_cast<std::uint64_t>(i / 4);
    const auto words = process::philox4x32(
        {static_cast<std::uint32_t>(quad), initializer_stream, entry.index, static_cast<std::uint32_t>(quad >> 32)},
        key);
    const std::array<float, 4> drawn = draw(entry.initializer, words);
    for (std::size_t j = 0; j < 4 && i + j < values.size(); ++j) values[i + j] = drawn[j];
  }
  return values;
}

}  // namespace halfstep::state
