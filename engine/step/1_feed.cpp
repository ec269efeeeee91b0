#include <fmt/format.h>

#include "step/stages.h"

namespace halfstep::step {

void feed_samples(plan::ProgramBuilder& builder, const SampleFeed& feed) {
  struct Push {
    std::uint32_t batch;
    std::uint32_t rows;
    std::uint32_t channels;
    std::uint32_t samples;
    std::array<float, 4> factor;
    std::array<float, 4> offset;
  };
  const TensorType& input = builder.info(feed.samples).type;
  const plan::Layout layout = plan::layout(input.shape);
  const std::int64_t batch = input.shape.front();
  const Push push{static_cast<std::uint32_t>(batch),
                  static_cast<std::uint32_t>(layout.rows / batch),
                  static_cast<std::uint32_t>(layout.columns),
                  feed.samples_in_set,
                  feed.factor,
                  feed.offset};
  const std::uint32_t local_size = flat_local_size(builder.target());
  builder.dispatch({.label = "feed",
                    .shader = fmt::format("feed_samples.{}", storage(builder.target(), input.dtype)),
                    .constants = {local_size},
                    .push = plan::push_bytes(push),
                    .operands = {{feed.indices, plan::Access::read},
                                 {feed.bytes, plan::Access::read},
                                 {feed.label_words, plan::Access::read},
                                 {feed.samples, plan::Access::write},
                                 {feed.labels, plan::Access::write}},
                    .groups = plan::groups_for(layout.quads() + (batch + 3) / 4, local_size)});
}

void feed_values(plan::ProgramBuilder& builder, plan::TensorId values, plan::TensorId input) {
  const TensorType& type = builder.info(input).type;
  if (type.dtype != DType::f16) {
    builder.alias(input, values, "feed");
    return;
  }
  const std::int64_t quads = plan::layout(type.shape).quads();
  const std::uint32_t local_size = flat_local_size(builder.target());
  builder.dispatch({.label = fmt::format("feed {}", builder.info(input).name),
                    .shader = fmt::format("feed_values.{}", storage(builder.target(), type.dtype)),
                    .constants = {local_size},
                    .push = plan::push_bytes(static_cast<std::uint32_t>(quads)),
                    .operands = {{values, plan::Access::read}, {input, plan::Access::write}},
                    .groups = plan::groups_for(quads, local_size)});
}

}  // namespace halfstep::step
