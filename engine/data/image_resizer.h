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

/// Resizes images on the device, each of its own size, to samples of one.
class ImageResizer {
 public:
  /// Samples are {height, width, channels}; the images must have the same number of channels.
  ImageResizer(vk::Context& context, std::uint32_t height, std::uint32_t width, std::uint32_t channels);

  /// Throws Error unless the image can be resized: it shrinks along neither axis further than the driver's limit of
  /// loop rounds allows (8,190 times where that is 65,535), and the device has buffers and workgroups for its bytes and
  /// its columns. May be called from any thread.
  void check(const io::DecodedImage& image) const;

  /// Appends the bytes of every image's sample to `samples`, in order, and waits for the device. The images have passed
  /// check().
  void resize(std::span<const io::DecodedImage> images, std::vector<std::uint8_t>& samples);

 private:
  /// As in shaders/data/resize.glsl.
  struct Source {
    std::uint32_t first_byte = 0;
    std::uint32_t height = 0;
    std::uint32_t width = 0;
    std::uint32_t first_quad = 0;
  };

  /// What one run takes.
  struct Room {
    std::uint64_t image_bytes = 0;
    std::uint64_t column_quads = 0;  ///< of f32, which the first pass leaves
    std::uint64_t samples = 0;

    bool holds(const Room& other) const;
  };

  std::uint64_t column_quads(const io::DecodedImage& image) const;
  Room with(Room room, const io::DecodedImage& image) const;
  void make_room(const Room& needed);
  void record(const Room& room);
  void run(std::span<const io::DecodedImage> images, std::vector<std::uint8_t>& samples);

  vk::Context& context_;
  std::uint32_t height_;
  std::uint32_t width_;
  std::uint32_t channels_;
  std::uint64_t sample_bytes_;
  std::uint64_t stride_;  ///< bytes from one sample to the next on the device
  Room most_;             ///< for several images
  Room room_;             ///< that the recording has
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
