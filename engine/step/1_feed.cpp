#include <fmt/format.h>

#include <utility>

#include "plan/pointwise.h"
#include "step/stages.h"

namespace halfstep::step {

namespace {

/// A sample as an image; one of another rank has its rows one above the other.
struct ImageShape {
  std::uint32_t height = 1;
  std::uint32_t width = 1;
  std::uint32_t channels = 1;

  friend bool operator==(const ImageShape&, const ImageShape&) = default;
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

struct SamplesPush {
  std::uint32_t batch;
  ImageShape input;
  ImageShape stored;
  std::uint32_t samples;
  std::array<float, 4> factor;
  std::array<float, 4> offset;
  std::array<float, 4> colour;
  std::uint32_t flip;
  std::uint32_t crop_padding;
  std::uint32_t cutout;
  std::uint32_t first;
};
static_assert(sizeof(SamplesPush) <= 128);

/// The first pass of resizing the batch: what feed_samples then reads in the place of the set's bytes.
plan::TensorId resize_columns(plan::ProgramBuilder& builder, const SampleFeed& feed, const SamplesPush& of) {
  struct Push {
    std::uint32_t images, width, channels;
    std::uint32_t stored_height, stored_width;
    std::uint32_t samples, first;
  };
  const ImageShape& stored = of.stored;
  const std::int64_t padded_channels = plan::divided_up(stored.channels, 4) * 4;
  const plan::TensorId columns =
      builder.tensor("resized columns", {DType::f32, {of.batch, stored.height, of.input.width, padded_channels}});
  const std::uint32_t local_size = flat_local_size(builder.target());
  builder.dispatch({.label = "resize columns",
                    .shader = "resize_columns.batch",
                    .constants = {local_size},
                    .push = plan::push_bytes(Push{of.batch, of.input.width, stored.channels, stored.height,
                                                  stored.width, of.samples, of.first}),
                    .operands = {{feed.indices, plan::Access::read},
                                 {feed.bytes, plan::Access::read},
                                 {columns, plan::Access::write}},
                    .groups = plan::groups_for(plan::layout(builder.info(columns).type.shape).quads(), local_size),
                    .rounds = resize_rounds(stored.width, of.input.width)});
  return columns;
}

}  // namespace

std::int64_t resize_rounds(std::int64_t pixels, std::int64_t places) {
  // The loop runs over a triangle that is as wide as two pixels of the smaller image.
  return 2 * plan::divided_up(pixels, places) + 2;
}

void feed_samples(plan::ProgramBuilder& builder, const SampleFeed& feed) {
  const TensorType input = builder.info(feed.samples).type;
  const std::int64_t batch = input.shape.front();
  const Augmentation& augmentation = feed.augmentation;
  const bool augmented = augmentation != Augmentation{};
  const SamplesPush push{static_cast<std::uint32_t>(batch),
                         image_shape(std::span(input.shape).subspan(1)),
                         image_shape(feed.stored),
                         feed.samples_in_set,
                         feed.factor,
                         feed.offset,
                         {augmentation.brightness, augmentation.contrast, augmentation.saturation, augmentation.hue},
                         static_cast<std::uint32_t>(augmentation.flip * 0x1p24F),
                         static_cast<std::uint32_t>(augmentation.crop_padding),
                         static_cast<std::uint32_t>(augmentation.cutout),
                         feed.first};
  const bool resize = push.input.height != push.stored.height || push.input.width != push.stored.width;
  const plan::TensorId source = resize ? resize_columns(builder, feed, push) : feed.bytes;
  std::vector<plan::Operand> operands{{feed.indices, plan::Access::read},
                                      {source, plan::Access::read},
                                      {feed.label_words, plan::Access::read},
                                      {feed.samples, plan::Access::write},
                                      {feed.labels, plan::Access::write}};
  if (augmented) operands.push_back({feed.state, plan::Access::read});
  const std::uint32_t local_size = flat_local_size(builder.target());
  builder.dispatch({.label = "feed",
                    .shader = fmt::format("feed_samples.{}.{}.{}", storage(builder.target(), input.dtype),
                                          augmented ? "augmented" : "plain", resize ? "columns" : "bytes"),
                    .constants = {local_size},
                    .push = plan::push_bytes(push),
                    .operands = std::move(operands),
                    .groups = plan::groups_for(plan::layout(input.shape).quads() + (batch + 3) / 4, local_size),
                    .rounds = resize ? resize_rounds(push.stored.height, push.input.height) : 0});
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
