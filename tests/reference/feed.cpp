#include "reference/feed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/philox.h"

namespace halfstep::reference {
namespace {

constexpr std::uint32_t augmentation_stream = 2;

double uniform(std::uint32_t word) {
  return (word >> 8) * 0x1p-24;
}

std::int64_t below(std::uint32_t word, std::int64_t count) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(count) >> 32);
}

double factor(std::uint32_t word, float range) {
  return 1 + static_cast<double>(range) * (2 * uniform(word) - 1);
}

/// The weight of pixel `i` of `pixels` in pixel `place` of `places`.
double weight(std::int64_t i, std::int64_t pixels, std::int64_t place, std::int64_t places) {
  const double ratio = static_cast<double>(pixels) / static_cast<double>(places);
  const double distance = std::abs(static_cast<double>(i) + 0.5 - (static_cast<double>(place) + 0.5) * ratio);
  return std::max(0.0, 1 - distance / std::max(ratio, 1.0));
}

double of_channel(const std::vector<float>& values, std::int64_t channel) {
  return static_cast<double>(values[std::min(static_cast<std::size_t>(channel), values.size() - 1)]);
}

/// Rotates a pixel's hue, using hue in degrees, chroma and lightness.
void turn_hue(std::span<double> pixel, double turns) {
  const double largest = std::max({pixel[0], pixel[1], pixel[2]});
  const double chroma = largest - std::min({pixel[0], pixel[1], pixel[2]});
  if (chroma == 0) return;
  double degrees = 0;
  if (largest == pixel[0]) {
    degrees = 60 * (pixel[1] - pixel[2]) / chroma;
  } else if (largest == pixel[1]) {
    degrees = 120 + 60 * (pixel[2] - pixel[0]) / chroma;
  } else {
    degrees = 240 + 60 * (pixel[0] - pixel[1]) / chroma;
  }
  degrees = std::fmod(degrees + 360 * turns + 720, 360);
  const double between = chroma * (1 - std::abs(std::fmod(degrees / 60, 2) - 1));
  const std::array<std::array<double, 3>, 6> sextants{{{chroma, between, 0},
                                                       {between, chroma, 0},
                                                       {0, chroma, between},
                                                       {0, between, chroma},
                                                       {between, 0, chroma},
                                                       {chroma, 0, between}}};
  const auto& colour = sextants[std::min<std::size_t>(static_cast<std::size_t>(degrees / 60), 5)];
  for (std::size_t c = 0; c < 3; ++c) pixel[c] = largest - chroma + colour[c];
}

/// Applies the colour augmentations to a pixel's channels, in the range 0 to 255.
void change_colours(std::span<double> pixel, const FeedSettings& feed, const Draws& draws) {
  const Augmentation& augmentation = feed.augmentation;
  if (augmentation.brightness == 0 && augmentation.contrast == 0 && augmentation.saturation == 0 &&
      augmentation.hue == 0) {
    return;
  }
  for (double& value : pixel) value *= draws.brightness;
  if (augmentation.saturation > 0) {
    const double grey = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
    for (double& value : pixel) value = grey + (value - grey) * draws.saturation;
  }
  if (augmentation.hue > 0) turn_hue(pixel, draws.hue);
  for (std::size_t c = 0; c < pixel.size(); ++c) {
    const double mean = 255 * of_channel(feed.mean, static_cast<std::int64_t>(c));
    pixel[c] = std::clamp(mean + (pixel[c] - mean) * draws.contrast, 0.0, 255.0);
  }
}

bool is_cut_out(const Augmentation& augmentation, const Draws& draws, std::int64_t y, std::int64_t x) {
  const std::int64_t row = y - draws.cutout_row + augmentation.cutout / 2;
  const std::int64_t column = x - draws.cutout_column + augmentation.cutout / 2;
  return row >= 0 && row < augmentation.cutout && column >= 0 && column < augmentation.cutout;
}

}  // namespace

Draws draws(const Augmentation& augmentation, const Shape& image, std::uint64_t seed, std::uint64_t step,
            std::uint32_t place) {
  const auto words = [&](std::uint32_t half) {
    return process::philox4x32({2 * place + half, augmentation_stream, static_cast<std::uint32_t>(step),
                                static_cast<std::uint32_t>(step >> 32)},
                               process::philox_key(seed));
  };
  const auto first = words(0);
  const auto second = words(1);
  Draws result;
  result.crop_row = below(first[0], 2 * augmentation.crop_padding + 1);
  result.crop_column = below(first[1], 2 * augmentation.crop_padding + 1);
  result.mirrored = uniform(first[2]) < static_cast<double>(augmentation.flip);
  result.cutout_row = below(first[3], image[0]);
  result.cutout_column = below(second[0], image[1]);
  result.brightness = factor(second[1], augmentation.brightness);
  result.contrast = factor(second[2], augmentation.contrast);
  result.saturation = factor(second[3], augmentation.saturation);
  const auto third = process::philox4x32({0x80000000U + place, augmentation_stream, static_cast<std::uint32_t>(step),
                                          static_cast<std::uint32_t>(step >> 32)},
                                         process::philox_key(seed));
  result.hue = factor(third[0], augmentation.hue) - 1;
  return result;
}

Array resized(const Array& image, std::int64_t height, std::int64_t width) {
  Array result({height, width, image.shape[2]});
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const auto at = position(result.shape, i);
    double total = 0;
    for (std::int64_t y = 0; y < image.shape[0]; ++y) {
      for (std::int64_t x = 0; x < image.shape[1]; ++x) {
        const double w = weight(y, image.shape[0], at[0], height) * weight(x, image.shape[1], at[1], width);
        result.values[i] += w * image.values[index_of(image.shape, std::vector{y, x, at[2]})];
        total += w;
      }
    }
    result.values[i] /= total;
  }
  return result;
}

Array fed(const Array& image, const Shape& input, const FeedSettings& feed, const Draws& draws) {
  const Augmentation& augmentation = feed.augmentation;
  const Array source = resized(image, input[0], input[1]);
  const auto channels = static_cast<std::size_t>(input[2]);
  Array result(input);
  for (std::size_t i = 0; i < result.values.size(); i += channels) {
    const auto at = position(input, i);
    const std::int64_t y = at[0] + draws.crop_row - augmentation.crop_padding;
    const std::int64_t x =
        (draws.mirrored ? input[1] - 1 - at[1] : at[1]) + draws.crop_column - augmentation.crop_padding;
    const std::span pixel = std::span(result.values).subspan(i, channels);
    if (is_cut_out(augmentation, draws, at[0], at[1])) continue;
    for (std::size_t c = 0; c < channels && y >= 0 && y < input[0] && x >= 0 && x < input[1]; ++c) {
      const auto channel = std::min(static_cast<std::int64_t>(c), source.shape[2] - 1);
      pixel[c] = source.values[index_of(source.shape, std::vector{y, x, channel})];
    }
    change_colours(pixel, feed, draws);
    for (std::size_t c = 0; c < channels; ++c) {
      const auto channel = static_cast<std::int64_t>(c);
      pixel[c] = (pixel[c] / 255 - of_channel(feed.mean, channel)) / of_channel(feed.stddev, channel);
    }
  }
  return result;
}

}  // namespace halfstep::reference
