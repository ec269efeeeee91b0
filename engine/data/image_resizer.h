#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io/decode_image.h"
#include "plan/plan.h"
#include "step/recording.h"
#include "vk/command/memory.h"
#include "vk/command/timeline.h"
#include "vk/device/context.h"
#include "vk/shader/pipelines.h"

namespace halfstep::data {

/// Throws Error unless an image of the first extents can be resized to the second: to no less than a sixtieth of its
/// height and width. (Mesa's lavapipe ends a kernel's loops after 65535 rounds in all, and an invocation resizes four
/// bytes.)
void check_resizable(std::int64_t height, std::int64_t width, std::int64_t to_height, std::int64_t to_width);

/// Resizes images on the device, each of its own size, to samples of one.
class ImageResizer {
 public:
  /// Samples are {height, width, channels}; so many channels do the images have that it is given.
  ImageResizer(vk::Context& context, std::uint32_t height, std::uint32_t width, std::uint32_t channels);

  /// Appends the bytes of every image's sample to `samples`. Throws Error for an image that the device cannot bind.
  void resize(std::span<const io::DecodedImage> images, std::vector<std::uint8_t>& samples);

 private:
  struct Source {
    std::uint32_t first_byte = 0;
    std::uint32_t height = 0;
    std::uint32_t width = 0;
    std::uint32_t reserved = 0;
  };

  void record(std::uint64_t image_bytes);
  void run(std::span<const io::DecodedImage> images, std::vector<std::uint8_t>& samples);

  vk::Context& context_;
  std::uint32_t height_;
  std::uint32_t width_;
  std::uint32_t channels_;
  std::uint64_t sample_bytes_;
  std::uint64_t stride_;      ///< bytes from one sample to the next on the device
  std::size_t most_samples_;  ///< of one run
  std::uint64_t image_capacity_ = 0;
  vk::Pipelines pipelines_;
  plan::Plan plan_;
  vk::Buffer arena_;
  vk::Buffer sources_;
  vk::Buffer images_;
  vk::Buffer samples_;
  std::unique_ptr<step::Recording> recording_;
  vk::Timeline timeline_;
};

}  // namespace halfstep::data
