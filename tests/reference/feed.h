#pragma once

#include <halfstep/data.h>

#include <cstdint>
#include <vector>

#include "reference/array.h"

namespace halfstep::reference {

/// The random draws for one image of one step.
struct Draws {
  std::int64_t crop_row = 0;  ///< of the window in the padded image
  std::int64_t crop_column = 0;
  bool mirrored = false;
  std::int64_t cutout_row = 0;  ///< the centre of the square
  std::int64_t cutout_column = 0;
  double brightness = 1;
  double contrast = 1;
  double saturation = 1;
  double hue = 0;  ///< in turns
};

/// The draws for index `place` in a batch of images {height, width, ...} in step `step` from 0.
Draws draws(const Augmentation& augmentation, const Shape& image, std::uint64_t seed, std::uint64_t step,
            std::uint32_t place);

/// The image {height, width, channels} resized to `height` and `width` by a triangle filter.
Array resized(const Array& image, std::int64_t height, std::int64_t width);

/// The settings of a Feed; see there.
struct FeedSettings {
  std::vector<float> mean{0};
  std::vector<float> stddev{1};
  Augmentation augmentation{};
};

/// The input of shape `input` that a feed computes from an image of bytes {height, width, channels}.
Array fed(const Array& image, const Shape& input, const FeedSettings& feed, const Draws& draws);

}  // namespace halfstep::reference
