#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/beyond_limit.h"
#include "plan/pointwise.h"
#include "step/stages.h"

namespace halfstep::step {

namespace {

/// A sample as an image; one of another rank has its rows one above the other.
struct ImageShape {
  std::uint32_t height = 1;
  std::uint32_t width = 1;
  std::uint32_t channels = 1;
};

ImageShape image_shape(std::span<const std::int64_t> sample) {
  ImageShape image;
  image.channels = static_cast<std::uint32_t>(sample.back());
  std::span<const std::int64_t> rows = sample.first(sample.size() - 1);
  if (rows.size() == 2) {
    image.width = static_cast<std::uint32_t>(rows.back());
    rows = rows.first(1);
  }
  for (const std::int64_t extent : rows) image.height *= static_cast<std::uint32_t>(extent);
  return image;
}

/// What feed_samples makes of the set's samples, and how many.
struct Samples {
  struct Push {
    std::uint32_t batch;
    std::uint32_t start;
    std::uint32_t first;
    std::uint32_t place;
    std::array<float, 4> factor;
    std::array<float, 4> offset;
    std::array<float, 4> colour;
    std::uint32_t flip;
    std::uint32_t crop_padding;
    std::uint32_t cutout;
  };

  ImageShape input;
  ImageShape stored;
  Push push;
};

/// What the set has of as many samples.
plan::Operand looked_up(plan::TensorId tensor, std::uint64_t samples, std::uint64_t bytes_each) {
  return {.tensor = tensor, .access = plan::Access::read, .most_bytes = samples * bytes_each};
}

std::uint64_t bytes_of_image(const ImageShape& image) {
  return std::uint64_t{image.height} * image.width * image.channels;
}

/// What the first pass of resizing leaves of one image, in f32.
Shape columns_shape(const Samples& of) {
  return {of.stored.height, of.input.width, plan::divided_up(of.stored.channels, 4) * 4};
}

/// How many images' columns one binding has room for: one image at least, which may take several.
std::uint32_t images_at_once(const plan::Target& target, const Samples& of) {
  const std::uint64_t each = plan::byte_size({DType::f32, columns_shape(of)});
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(std::min<std::uint64_t>(target.max_storage_range / each, of.push.batch), 1));
}

/// The first pass of resizing images of the batch: what feed_samples then reads in the place of the set's bytes.
void resize_columns(plan::ProgramBuilder& builder, const SampleFeed& feed, const Samples& of, plan::TensorId columns) {
  struct Push {
    std::uint32_t images, width, channels;
    std::uint32_t stored_height, stored_width;
    std::uint32_t first;
  };
  const ImageShape& stored = of.stored;
  const std::uint32_t local_size = flat_local_size(builder.target());
  builder.dispatch({.label = "resize columns",
                    .shader = "resize_columns.batch",
                    .constants = {local_size},
                    .push = plan::push_bytes(Push{of.push.batch, of.input.width, stored.channels, stored.height,
                                                  stored.width, of.push.first}),
                    .operands = {looked_up(feed.indices, of.push.batch, sizeof(std::uint32_t)),
                                 looked_up(feed.bytes, of.push.batch, bytes_of_image(stored)),
                                 {columns, plan::Access::write}},
                    .groups = plan::groups_for(builder.target(),
                                               of.push.batch * plan::layout(columns_shape(of)).quads(), local_size),
                    .rounds = resize_rounds(stored.width, of.input.width)});
}

/// Gathers these images, from their bytes or, resized, from their columns.
void gather_images(plan::ProgramBuilder& builder, const SampleFeed& feed, const Samples& of,
                   std::optional<plan::TensorId> columns) {
  const DType dtype = builder.info(feed.samples).type.dtype;
  const bool augmented = feed.augmentation != Augmentation{};
  std::vector<plan::Operand> operands{looked_up(feed.indices, of.push.batch, sizeof(std::uint32_t)),
                                      columns ? plan::Operand{*columns, plan::Access::read}
                                              : looked_up(feed.bytes, of.push.batch, bytes_of_image(of.stored)),
                                      {feed.samples, plan::Access::write}};
  if (augmented) operands.push_back({feed.state, plan::Access::read});
  const ImageShape& input = of.input;
  const std::int64_t quads =
      std::int64_t{of.push.batch} * input.height * input.width * plan::divided_up(input.channels, 4);
  const std::uint32_t local_size = flat_local_size(builder.target());
  builder.dispatch({.label = "feed",
                    .shader = fmt::format("feed_samples.{}.{}.{}", storage(builder.target(), dtype),
                                          augmented ? "augmented" : "plain", columns ? "columns" : "bytes"),
                    .constants = {local_size, input.height, input.width, input.channels, of.stored.height,
                                  of.stored.width, of.stored.channels},
                    .push = plan::push_bytes(of.push),
                    .operands = std::move(operands),
                    .groups = plan::groups_for(builder.target(), quads, local_size),
                    .rounds = columns ? resize_rounds(of.stored.height, input.height) : 0});
}

/// Kernels count the bytes of samples in words of 32 bits.
void check_bytes(const plan::ProgramTensor& samples) {
  constexpr std::uint64_t most = std::uint64_t{1} << 32;
  if (samples.bytes <= most) return;
  fail_beyond_limit("feed", fmt::format("expected at most {} bytes of {}, got {}", most, samples.name, samples.bytes),
                    "use a smaller batch, or keep the set in host memory");
}

}  // namespace

std::int64_t resize_rounds(std::int64_t pixels, std::int64_t places) {
  // The loop runs over a triangle that is as wide as two pixels of the smaller image.
  return 2 * plan::divided_up(pixels, places) + 2;
}

void feed_samples(plan::ProgramBuilder& builder, const SampleFeed& feed) {
  check_bytes(builder.info(feed.bytes));
  const Shape shape = builder.info(feed.samples).type.shape;
  const auto batch = static_cast<std::uint32_t>(shape.front());
  const Augmentation& augmentation = feed.augmentation;
  Samples of{
      .input = image_shape(std::span(shape).subspan(1)),
      .stored = image_shape(feed.stored),
      .push = {.batch = batch,
               .start = 0,
               .first = feed.first,
               .place = feed.place,
               .factor = feed.factor,
               .offset = feed.offset,
               .colour = {augmentation.brightness, augmentation.contrast, augmentation.saturation, augmentation.hue},
               .flip = static_cast<std::uint32_t>(augmentation.flip * 0x1p24F),
               .crop_padding = static_cast<std::uint32_t>(augmentation.crop_padding),
               .cutout = static_cast<std::uint32_t>(augmentation.cutout)}};
  if (of.input.height == of.stored.height && of.input.width == of.stored.width) {
    gather_images(builder, feed, of, std::nullopt);
    return;
  }
  // As many images at a time as one binding has room for, all through one workspace.
  const std::uint32_t most = images_at_once(builder.target(), of);
  Shape workspace = columns_shape(of);
  workspace.insert(workspace.begin(), most);
  const plan::TensorId columns = builder.tensor("resized columns", {DType::f32, workspace});
  for (std::uint32_t start = 0; start < batch; start += most) {
    of.push.batch = std::min(most, batch - start);
    of.push.start = start;
    of.push.first = feed.first + start;
    of.push.place = feed.place + start;
    resize_columns(builder, feed, of, columns);
    gather_images(builder, feed, of, columns);
  }
}

void feed_elements(plan::ProgramBuilder& builder, const ElementFeed& feed) {
  struct Push {
    std::uint32_t rows, columns;
    std::uint32_t sample_size, first;
    std::uint32_t first_element, stride, channels;
  };
  check_bytes(builder.info(feed.elements));
  const plan::ProgramTensor& input = builder.info(feed.input);
  const plan::Layout lay = plan::layout(input.type.shape);
  const bool floats = feed.type == ElementType::f32;
  const auto batch = static_cast<std::uint64_t>(input.type.shape.front());
  const std::uint64_t sample_bytes = std::uint64_t{feed.sample_size} * static_cast<std::uint64_t>(bytes(feed.type));
  std::vector<plan::Operand> operands{looked_up(feed.indices, batch, sizeof(std::uint32_t)),
                                      looked_up(feed.elements, batch, sample_bytes),
                                      {feed.input, plan::Access::write}};
  if (feed.normalisation) operands.push_back({*feed.normalisation, plan::Access::read});
  const std::uint32_t local_size = flat_local_size(builder.target());
  builder.dispatch(
      {.label = fmt::format("feed {}", input.name),
       .shader = floats ? fmt::format("feed_floats.{}.{}", storage(builder.target(), input.type.dtype),
                                      feed.normalisation ? "normalised" : "plain")
                        : fmt::format("feed_integers.{}", name(feed.type)),
       .constants = {local_size},
       .push = plan::push_bytes(Push{static_cast<std::uint32_t>(lay.rows), static_cast<std::uint32_t>(lay.columns),
                                     feed.sample_size, feed.first, feed.first_element, feed.stride, feed.channels}),
       .operands = std::move(operands),
       .groups = plan::groups_for(builder.target(), lay.quads(), local_size)});
}

void feed_values(plan::ProgramBuilder& builder, plan::TensorId values, plan::TensorId input) {
  const TensorType type = builder.info(input).type;
  if (!is_narrow(type.dtype)) {
    builder.alias(input, values, "feed");
    return;
  }
  plan::Expression cast;
  cast.layout = plan::layout(type.shape);
  cast.reads = {plan::Reading{}};
  cast.value = 0;
  plan::Dispatch dispatch =
      plan::pointwise(std::move(cast), {{input, plan::Access::write}, {values, plan::Access::read}});
  dispatch.label = fmt::format("feed {}", builder.info(input).name);
  builder.dispatch(std::move(dispatch));
}

}  // namespace halfstep::step
