#include "data/image_resizer.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "plan/program.h"
#include "step/stages.h"
#include "vk/command/transfer.h"

namespace halfstep::data {
namespace {

/// The most bytes of the images, and of the samples, of one run, unless one image is larger.
constexpr std::uint64_t most_run_bytes = std::uint64_t{1} << 24;
/// The same in quads of f32 of what the first pass leaves: 32 MiB.
constexpr std::uint64_t most_column_quads = std::uint64_t{1} << 21;

/// Kernels count bytes in words of 32 bits.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;

/// Places in the table of images.
constexpr std::size_t most_places = 256;

std::uint64_t whole_words(std::uint64_t bytes) {
  return (bytes + 3) / 4 * 4;
}

TensorType columns_type(std::uint64_t quads) {
  return {DType::f32, {4 * static_cast<std::int64_t>(quads)}};
}

/// Loop rounds of an invocation of either pass where an axis shrinks `ratio` times. The first pass finds its image by
/// halving the table; the second makes four bytes.
std::int64_t column_rounds(std::int64_t ratio) {
  constexpr std::int64_t halvings = std::bit_width(most_places - 1);
  return halvings + 1 + step::resize_rounds(ratio, 1);
}

std::int64_t row_rounds(std::int64_t ratio) {
  return 4 * (step::resize_rounds(ratio, 1) + 1) + 1;
}

/// How many times as high and wide as its sample an image may be: row_rounds, the larger, grows by 8 with the ratio.
std::int64_t most_shrinking(const plan::Target& target) {
  return (std::int64_t{target.max_rounds} - row_rounds(0)) / (row_rounds(1) - row_rounds(0));
}

/// Invocations that one dispatch may have, or as many as 32 bits number.
std::uint64_t most_invocations(const plan::Target& target) {
  constexpr std::uint64_t numbered = std::uint64_t{1} << 32;
  const std::uint64_t groups = std::min(std::uint64_t{target.max_groups[0]} * target.max_groups[1], numbered);
  return std::min(groups * plan::flat_local_size(target), numbered);
}

}  // namespace

bool ImageResizer::Room::holds(const Room& other) const {
  return other.image_bytes <= image_bytes && other.column_quads <= column_quads && other.samples <= samples;
}

ImageResizer::ImageResizer(vk::Context& context, std::uint32_t height, std::uint32_t width, std::uint32_t channels)
    : context_(context),
      height_(height),
      width_(width),
      channels_(channels),
      sample_bytes_(std::uint64_t{height} * width * channels),
      stride_(whole_words(sample_bytes_)),
      pipelines_(context),
      timeline_(context) {
  const plan::Target& target = context.target();
  const std::uint64_t bound = std::min(target.max_storage_range, context.capabilities().max_buffer_bytes);
  const std::uint64_t bytes = std::min(most_run_bytes, bound);
  most_ = {.image_bytes = bytes,
           .column_quads = std::min({most_column_quads, bound / 16, most_invocations(target)}),
           .samples = std::clamp<std::uint64_t>(std::min(bytes / stride_, 4 * most_invocations(target) / stride_), 1,
                                                most_places)};
}

std::uint64_t ImageResizer::column_quads(const io::DecodedImage& image) const {
  return std::uint64_t{image.height} * width_ * ((channels_ + 3) / 4);
}

void ImageResizer::check(const io::DecodedImage& image) const {
  const plan::Target& target = context_.target();
  const std::int64_t most = most_shrinking(target);
  if (image.height > most * height_ || image.width > most * width_) {
    fail("image", fmt::format("expected an image at most {} times as high and wide as the {} by {} it is resized to, "
                              "by the driver's limit of loop rounds, got {} by {}",
                              most, height_, width_, image.height, image.width));
  }
  const auto at_most = [&](std::string_view what, std::uint64_t limit, std::uint64_t needed) {
    if (needed <= limit) return;
    fail("image", fmt::format("expected at most {} {} to resize an image, got {} for {} by {}", limit, what, needed,
                              image.height, image.width));
  };
  const std::uint64_t quads = column_quads(image);
  at_most("bytes", std::min(most_bytes, context_.capabilities().max_buffer_bytes), whole_words(image.bytes.size()));
  at_most("bytes", most_bytes, plan::byte_size(columns_type(quads)));
  at_most("invocations", most_invocations(target), quads);
}

ImageResizer::Room ImageResizer::with(Room room, const io::DecodedImage& image) const {
  return {room.image_bytes + whole_words(image.bytes.size()), room.column_quads + column_quads(image),
          room.samples + 1};
}

/// Makes room for what is needed, and for as much again as there was, so that it is seldom made.
void ImageResizer::make_room(const Room& needed) {
  if (room_.holds(needed)) return;
  const auto grown = [](std::uint64_t need, std::uint64_t had, std::uint64_t most) {
    return std::max({need, had, std::min(2 * had, most)});
  };
  const Room room{grown(needed.image_bytes, room_.image_bytes, most_.image_bytes),
                  grown(needed.column_quads, room_.column_quads, most_.column_quads),
                  grown(needed.samples, room_.samples, most_.samples)};
  room_ = {};  // until there is a recording again
  record(room);
  room_ = room;
}

/// Makes the buffers, and the recording that resizes what is in them.
void ImageResizer::record(const Room& room) {
  recording_.reset();
  sources_ = vk::Buffer(context_, room.samples * sizeof(Source), vk::Memory::device, "image table");
  images_ = vk::Buffer(context_, room.image_bytes, vk::Memory::device, "decoded images");
  samples_ = vk::Buffer(context_, room.samples * stride_, vk::Memory::device, "resized images");
  plan::Target target = context_.target();
  target.reproducible = true;  // a training set is the same, byte for byte, whatever device has read it
  plan::ProgramBuilder builder(target);
  const auto whole = [&](const char* name, const vk::Buffer& buffer) {
    return builder.place_bytes(name, buffer.bytes(), {builder.buffer(name), 0});
  };
  const plan::TensorId sources = whole("sources", sources_);
  const plan::TensorId columns = builder.tensor("columns", columns_type(room.column_quads));
  const std::uint32_t local_size = plan::flat_local_size(target);
  const std::int64_t most = most_shrinking(target);
  const auto places = static_cast<std::uint32_t>(room.samples);
  builder.dispatch({.label = "resize columns",
                    .shader = "resize_columns.table",
                    .constants = {local_size},
                    .push = plan::push_bytes(std::array{places, width_, channels_}),
                    .operands = {{sources, plan::Access::read},
                                 {whole("images", images_), plan::Access::read},
                                 {columns, plan::Access::write}},
                    .groups = plan::groups_for(target, static_cast<std::int64_t>(room.column_quads), local_size),
                    .rounds = column_rounds(most)});
  builder.dispatch(
      {.label = "resize rows",
       .shader = "resize_images",
       .constants = {local_size},
       .push = plan::push_bytes(std::array{places, height_, width_, channels_}),
       .operands = {{sources, plan::Access::read},
                    {columns, plan::Access::read},
                    {whole("samples", samples_), plan::Access::write}},
       .groups = plan::groups_for(target, static_cast<std::int64_t>(room.samples * stride_ / 4), local_size),
       .rounds = row_rounds(most)});
  plan_ = plan::make_plan(builder.finish(), plan::arena_options(target));
  arena_ = vk::Buffer::in_parts(context_, plan_.arena.bytes, "arena");
  const vk::Buffer* buffers[] = {&arena_, &sources_, &images_, &samples_};
  recording_ = std::make_unique<step::Recording>(context_, pipelines_, plan_, buffers);
}

void ImageResizer::resize(std::span<const io::DecodedImage> images, std::vector<std::uint8_t>& samples) {
  while (!images.empty()) {
    std::size_t count = 1;
    Room needed = with({}, images.front());
    while (count < images.size()) {
      const Room next = with(needed, images[count]);
      if (!most_.holds(next)) break;
      needed = next;
      count++;
    }
    make_room(needed);
    run(images.first(count), samples);
    images = images.subspan(count);
  }
}

void ImageResizer::run(std::span<const io::DecodedImage> images, std::vector<std::uint8_t>& samples) {
  // A place without an image has no rows, and begins after all columns.
  std::vector<Source> table;
  std::vector<std::uint8_t> bytes;
  std::uint64_t quads = 0;
  for (const io::DecodedImage& image : images) {
    table.push_back(
        {static_cast<std::uint32_t>(bytes.size()), image.height, image.width, static_cast<std::uint32_t>(quads)});
    quads += column_quads(image);
    bytes.insert(bytes.end(), image.bytes.begin(), image.bytes.end());
    bytes.resize(whole_words(bytes.size()));
  }
  table.resize(room_.samples, {.first_quad = static_cast<std::uint32_t>(quads)});
  vk::upload(context_, sources_, 0, std::as_bytes(std::span(table)));
  vk::upload(context_, images_, 0, std::as_bytes(std::span(bytes)));
  recording_->run(timeline_);
  std::vector<std::uint8_t> resized(images.size() * stride_);
  vk::download(context_, samples_, 0, std::as_writable_bytes(std::span(resized)));
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto begin = resized.begin() + static_cast<std::ptrdiff_t>(i * stride_);
    samples.insert(samples.end(), begin, begin + static_cast<std::ptrdiff_t>(sample_bytes_));
  }
}

}  // namespace halfstep::data
