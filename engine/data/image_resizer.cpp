#include "data/image_resizer.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>

#include "plan/program.h"
#include "step/stages.h"
#include "vk/command/transfer.h"

namespace halfstep::data {
namespace {

/// Bytes of images, and of samples, that one run is made for; an image may be larger.
constexpr std::uint64_t usual_bytes = std::uint64_t{1} << 24;

/// How many times as high and wide as its sample an image may be.
constexpr std::int64_t most_shrinking = 60;

std::uint64_t whole_words(std::uint64_t bytes) {
  return (bytes + 3) / 4 * 4;
}

}  // namespace

void check_resizable(std::int64_t height, std::int64_t width, std::int64_t to_height, std::int64_t to_width) {
  if (height > most_shrinking * to_height || width > most_shrinking * to_width) {
    fail("image",
         fmt::format("expected an image at most {} times as high and wide as the {} by {} it is resized to, got "
                     "{} by {}",
                     most_shrinking, to_height, to_width, height, width));
  }
}

ImageResizer::ImageResizer(vk::Context& context, std::uint32_t height, std::uint32_t width, std::uint32_t channels)
    : context_(context),
      height_(height),
      width_(width),
      channels_(channels),
      sample_bytes_(std::uint64_t{height} * width * channels),
      stride_(whole_words(sample_bytes_)),
      most_samples_(std::clamp<std::size_t>(usual_bytes / stride_, 1, 256)),
      pipelines_(context),
      arena_(context, 0, vk::Memory::device, "arena"),
      sources_(context, most_samples_ * sizeof(Source), vk::Memory::device, "image table"),
      samples_(context, most_samples_ * stride_, vk::Memory::device, "resized images"),
      timeline_(context) {
  record(usual_bytes);
}

/// Makes room for `image_bytes` of images, and the recording that resizes them.
void ImageResizer::record(std::uint64_t image_bytes) {
  struct Push {
    std::uint32_t samples;
    std::uint32_t height;
    std::uint32_t width;
    std::uint32_t channels;
  };
  image_capacity_ = image_bytes;
  images_ = vk::Buffer(context_, image_bytes, vk::Memory::device, "decoded images");
  plan::ProgramBuilder builder(context_.target());
  const auto whole = [&](const char* name, const vk::Buffer& buffer) {
    return builder.place_bytes(name, buffer.bytes(), {builder.buffer(name), 0});
  };
  const std::uint32_t local_size = plan::flat_local_size(builder.target());
  const auto words = static_cast<std::int64_t>(most_samples_ * stride_ / 4);
  builder.dispatch(
      {.label = "resize",
       .shader = "resize_images",
       .constants = {local_size},
       .push = plan::push_bytes(Push{static_cast<std::uint32_t>(most_samples_), height_, width_, channels_}),
       .operands = {{whole("sources", sources_), plan::Access::read},
                    {whole("images", images_), plan::Access::read},
                    {whole("samples", samples_), plan::Access::write}},
       .groups = plan::groups_for(words, local_size),
       .rounds = 4 * (step::resize_rounds(most_shrinking, most_shrinking, 1, 1) + 1)});
  plan_ = plan::make_plan(builder.finish(), {.alignment = context_.target().offset_alignment});
  const vk::Buffer* buffers[] = {&arena_, &sources_, &images_, &samples_};
  recording_ = std::make_unique<step::Recording>(context_, pipelines_, plan_, buffers);
}

void ImageResizer::resize(std::span<const io::DecodedImage> images, std::vector<std::uint8_t>& samples) {
  while (!images.empty()) {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    while (count < std::min(images.size(), most_samples_)) {
      const std::uint64_t next = bytes + whole_words(images[count].bytes.size());
      if (count > 0 && next > image_capacity_) break;
      bytes = next;
      count++;
    }
    if (bytes > image_capacity_) record(bytes);
    run(images.first(count), samples);
    images = images.subspan(count);
  }
}

void ImageResizer::run(std::span<const io::DecodedImage> images, std::vector<std::uint8_t>& samples) {
  // A place without an image has no width.
  std::vector<Source> table(most_samples_);
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < images.size(); ++i) {
    table[i] = {static_cast<std::uint32_t>(bytes.size()), images[i].height, images[i].width, 0};
    bytes.insert(bytes.end(), images[i].bytes.begin(), images[i].bytes.end());
    bytes.resize(whole_words(bytes.size()));
  }
  vk::upload(context_, sources_, 0, std::as_bytes(std::span(table)));
  vk::upload(context_, images_, 0, std::as_bytes(std::span(bytes)));
  timeline_.wait(timeline_.submit(recording_->commands()));
  std::vector<std::uint8_t> resized(images.size() * stride_);
  vk::download(context_, samples_, 0, std::as_writable_bytes(std::span(resized)));
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto begin = resized.begin() + static_cast<std::ptrdiff_t>(i * stride_);
    samples.insert(samples.end(), begin, begin + static_cast<std::ptrdiff_t>(sample_bytes_));
  }
}

}  // namespace halfstep::data
