#include "train/feed.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/image_resizer.h"
#include "graph/operator.h"

namespace halfstep::train {
namespace {

void check_inputs(const Feed& feed, const graph::Ir& ir) {
  for (const Tensor& input : {feed.samples, feed.labels}) {
    if (&graph::ir_of(input) != &ir || ir.values[input.id()].origin != graph::Origin::input) {
      fail("feed", fmt::format("expected inputs of the graph, got '{}'", input.name()));
    }
  }
  const bool shapes = feed.samples.rank() >= 2 && feed.labels.rank() == 1 && feed.samples.dim(0) == feed.labels.dim(0);
  if (!shapes || feed.samples.dtype() != DType::f32 || feed.labels.dtype() != DType::u32) {
    fail("feed", fmt::format("expected f32 samples {{batch, ...}} and u32 labels {{batch}}, got {} and {}",
                             to_string(feed.samples.type()), to_string(feed.labels.type())));
  }
}

Shape input_shape(const Feed& feed) {
  Shape shape = feed.samples.shape();
  shape.erase(shape.begin());
  return shape;
}

void check_stored(const Feed& feed, const Shape& stored) {
  const Shape input = input_shape(feed);
  const bool images = input.size() == 3 && stored.size() == 3;
  if (stored == input || (images && (stored[2] == input[2] || stored[2] == 1))) return;
  fail("feed",
       fmt::format("expected samples of {} for '{}', got {}", to_string(input), feed.samples.name(), to_string(stored)),
       "only images {height, width, channels} are resized, and only a single channel is repeated");
}

void require(bool condition, const char* name, std::string_view range, double value) {
  if (!condition) fail("feed", fmt::format("expected {} to be {}, got {}", name, range, value));
}

void check_augmentation(const Augmentation& augmentation, const Shape& input) {
  if (augmentation == Augmentation{}) return;
  if (input.size() != 3) {
    fail("feed", fmt::format("expected images {{height, width, channels}} to augment, got {}", to_string(input)));
  }
  const auto check_share = [](const char* name, float value) {
    require(value >= 0 && value <= 1, name, "0 to 1", double{value});
  };
  check_share("flip", augmentation.flip);
  check_share("brightness", augmentation.brightness);
  check_share("saturation", augmentation.saturation);
  check_share("contrast", augmentation.contrast);
  require(augmentation.hue >= 0 && augmentation.hue <= 0.5F, "hue", "0 to 0.5", double{augmentation.hue});
  const auto check_pixels = [&](const char* name, std::int64_t value) {
    const std::int64_t most = std::max(input[0], input[1]);
    require(value >= 0 && value <= most, name, fmt::format("0 to {}", most), static_cast<double>(value));
  };
  check_pixels("crop_padding", augmentation.crop_padding);
  check_pixels("cutout", augmentation.cutout);
  if ((augmentation.saturation > 0 || augmentation.hue > 0) && input[2] != 3) {
    fail("feed", fmt::format("expected three channels to change the saturation or hue of, got {}", input[2]));
  }
}

}  // namespace

void check_feed(const Feed& feed, const graph::Ir& ir, const Shape& stored) {
  check_inputs(feed, ir);
  check_stored(feed, stored);
  check_augmentation(feed.augmentation, input_shape(feed));
}

Shape stored_shape(const Feed& feed, const Dataset* training_set) {
  return training_set == nullptr ? input_shape(feed) : training_set->sample_shape;
}

void check_classes(const Dataset& set, const graph::Ir& ir, graph::ValueId labels) {
  for (const graph::Node& node : ir.nodes) {
    const bool judges =
        node.op->numerics() == graph::Numerics::as_is && node.inputs.size() > 1 && node.inputs[1] == labels;
    if (!judges) continue;
    const Shape& logits = ir.values[node.inputs[0]].type.shape;
    if (logits.size() == 2 && logits[1] < std::int64_t{set.classes}) {
      fail("feed", fmt::format("expected a set of at most {} classes, as many as {} has logits, got {} in '{}'",
                               logits[1], node.op->name(), set.classes, set.name));
    }
  }
}

step::Normalization normalization(const Feed& feed) {
  const std::int64_t channels = feed.samples.dim(-1);
  step::Normalization result;
  for (const std::vector<float>* values : {&feed.mean, &feed.deviation}) {
    const bool one_each = std::ssize(*values) == channels && channels <= 4;
    if (values->size() != 1 && !one_each) {
      fail("feed", fmt::format("expected one mean and deviation, or {} for as many channels (at most 4), got {}",
                               channels, values->size()));
    }
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const float mean = feed.mean[std::min(i, feed.mean.size() - 1)];
    const float deviation = feed.deviation[std::min(i, feed.deviation.size() - 1)];
    if (!std::isfinite(mean) || !std::isfinite(deviation) || deviation <= 0) {
      fail("feed", fmt::format("expected a finite mean and a positive deviation, got {} and {}", mean, deviation));
    }
    result.factor[i] = 1 / (255 * deviation);
    result.offset[i] = -mean / deviation;
  }
  return result;
}

}  // namespace halfstep::train
