// Options of a trainer.
#include "c/handles.h"

namespace halfstep::c {
namespace {

ParameterGroup group_of(const hs_parameter_group& given) {
  ParameterGroup group;
  group.pattern = text(given.pattern, "a group's pattern");
  group.rate = number_or(given.rate, 1.0F);
  if (given.weight_decay != 0) group.weight_decay = number_or(given.weight_decay, 0.0F);
  group.frozen = given.frozen != 0;
  if (given.optimizer != nullptr) group.optimizer = optimizer_of(given.optimizer);
  return group;
}

std::map<std::string, Tensor> metrics_of(const hs_graph& graph, std::span<const hs_metric> metrics) {
  std::map<std::string, Tensor> result;
  for (const hs_metric& metric : metrics) {
    const std::string name = text(metric.name, "a metric's name");
    if (!result.emplace(name, tensor_of(graph, metric.tensor)).second) {
      fail("trainer", "expected metrics of names that differ, got '" + name + "' twice");
    }
  }
  return result;
}

InputFeed feed_of(const hs_graph& graph, const hs_feed& given) {
  InputFeed feed;
  feed.input = tensor_of(graph, given.input);
  feed.field = text_or(given.field, "");
  if (given.numbers != 0) {
    const std::span<const float> mean = list(given.mean, given.numbers, "a feed's means");
    const std::span<const float> stddev = list(given.stddev, given.numbers, "a feed's standard deviations");
    feed.mean.assign(mean.begin(), mean.end());
    feed.stddev.assign(stddev.begin(), stddev.end());
  }
  return feed;
}

Augmentation augmentation_of(const hs_augmentation* options) {
  const hs_augmentation given = read(options, "augmentation");
  Augmentation augmentation;
  augmentation.crop_padding = given.crop_padding;
  augmentation.flip = given.flip;
  augmentation.brightness = given.brightness;
  augmentation.saturation = given.saturation;
  augmentation.hue = given.hue;
  augmentation.contrast = given.contrast;
  augmentation.cutout = given.cutout;
  return augmentation;
}

/// Images in the field "samples", which alone are augmented, are Feed::samples.
Feed feeds_of(const hs_graph& graph, std::span<const hs_feed> given, const Augmentation& augmentation) {
  Feed feed;
  feed.augmentation = augmentation;
  for (const hs_feed& one : given) {
    InputFeed input = feed_of(graph, one);
    const std::string& field = input.field.empty() ? input.input.name() : input.field;
    if (field == "samples" && input.input.dtype() == DType::f32 && !feed.samples.defined()) {
      feed.samples = input.input;
      feed.mean = std::move(input.mean);
      feed.stddev = std::move(input.stddev);
    } else {
      feed.inputs.push_back(std::move(input));
    }
  }
  return feed;
}

Buckets buckets_of(const hs_trainer_options& given) {
  Buckets buckets;
  buckets.field = text_or(given.bucket_field, "lengths");
  buckets.longest = given.longest;
  const Augmentation augmentation = augmentation_of(given.augmentation);
  for (const hs_bucket& one : list(given.buckets, given.bucket_count, "buckets")) {
    const hs_graph& graph = c::given(one.graph, "a bucket's graph");
    Bucket bucket;
    bucket.length = one.length;
    bucket.graph = graph.graph;
    bucket.loss = tensor_of(graph, one.loss);
    bucket.metrics = metrics_of(graph, list(one.metrics, given.metric_count, "a bucket's metrics"));
    bucket.feed = feeds_of(graph, list(one.feeds, one.feed_count, "a bucket's feeds"), augmentation);
    buckets.shorter.push_back(std::move(bucket));
  }
  return buckets;
}

void set_data(Training& training, const hs_graph& graph, const hs_trainer_options& given) {
  const std::span<const hs_feed> feeds = list(given.feeds, given.feed_count, "feeds");
  const Augmentation augmentation = augmentation_of(given.augmentation);
  if (feeds.empty() && augmentation != Augmentation{}) {
    fail("trainer", "expected feeds where there is an augmentation, got none");
  }
  if (!feeds.empty()) training.options.feed = feeds_of(graph, feeds, augmentation);
  if (given.bucket_count > 0) training.options.buckets = buckets_of(given);
  if (given.training_set != nullptr) training.set = given.training_set->set;
  if (given.source != nullptr) training.source = std::make_shared<const Source>(source_of(*given.source));
  training.options.training_set = training.set.get();
  training.options.source = training.source.get();
}

}  // namespace

Training training_of(const hs_graph& graph, const hs_trainer_options& options) {
  const hs_trainer_options given = read(&options, "trainer");
  expect_sound(graph);
  Training training;
  TrainerOptions& result = training.options;
  result.loss = tensor_of(graph, given.loss);
  const std::span<const hs_metric> metrics = list(given.metrics, given.metric_count, "metrics");
  result.metrics = metrics_of(graph, metrics);
  for (const hs_metric& metric : metrics) training.metrics.emplace_back(metric.name);
  result.optimizer = optimizer_of(given.optimizer);
  for (const hs_parameter_group& group : list(given.groups, given.group_count, "groups")) {
    result.groups.push_back(group_of(group));
  }
  result.clip_norm = given.clip_norm;
  result.gradient_norm = given.gradient_norm != 0;
  result.accumulate = number_or<std::int64_t>(given.accumulate, 1);
  result.ema_decay = given.ema_decay;
  result.weight_limit = given.weight_limit;
  result.recompute = text_or(given.recompute, "");
  result.decay_vectors = chosen(given.decay_vectors, true);
  result.precision = precision_of(given.precision);
  result.seed = number_or<std::uint64_t>(given.seed, 42);
  result.model = text_or(given.model, "");
  for (const char* name : list(given.classes, given.class_count, "names of classes")) {
    result.classes.push_back(text(name, "the name of a class"));
  }
  set_data(training, graph, given);
  if (given.log != nullptr) {
    result.log = [log = given.log, user = given.log_user](const std::string& line) { log(user, line.c_str()); };
  }
  if (given.cancel != nullptr) {
    result.cancel = [cancel = given.cancel, user = given.cancel_user] { return cancel(user) != 0; };
  }
  result.trace = text_or(given.trace, "");
  result.snapshot_every = given.snapshot_every;
  result.memory_limit = given.memory_limit;
  result.resident_limit = given.resident_limit;
  result.shared_inputs = buffers_of(given.shared_inputs, given.shared_input_count);
  return training;
}

DeviceBuffer buffer_of(const hs_device_buffer& buffer) {
  return {.buffer = buffer.buffer,
          .memory = buffer.memory,
          .memory_type = buffer.memory_type,
          .offset = buffer.offset,
          .bytes = buffer.bytes,
          .usage = buffer.usage};
}

std::map<std::string, DeviceBuffer> buffers_of(const hs_device_buffer* buffers, std::size_t count) {
  std::map<std::string, DeviceBuffer> result;
  for (const hs_device_buffer& each : list(buffers, count, "shared inputs")) {
    const std::string name = text(each.name, "a shared input's name");
    if (!result.emplace(name, buffer_of(each)).second) {
      fail("inputs", "expected memory for '" + name + "' once, got it twice");
    }
  }
  return result;
}

std::map<std::string, Values> values_of(const hs_values* inputs, std::size_t count) {
  std::map<std::string, Values> values;
  for (const hs_values& input : list(inputs, count, "inputs")) {
    const std::string name = text(input.name, "an input's name");
    if ((input.f32 == nullptr) == (input.u32 == nullptr)) {
      fail("inputs",
           "expected either f32 or u32 values for '" + name + "', got " + (input.f32 == nullptr ? "neither" : "both"));
    }
    const bool first = input.f32 != nullptr ? values.emplace(name, std::span(input.f32, input.count)).second
                                            : values.emplace(name, std::span(input.u32, input.count)).second;
    if (!first) fail("inputs", "expected values for '" + name + "' once, got them twice");
  }
  return values;
}

LoadOptions load_options(int strict) {
  LoadOptions options;
  options.strict = strict != 0;
  return options;
}

void give(const LoadReport& report, hs_load_report** room) {
  if (room != nullptr) *room = new hs_load_report{report};
}

}  // namespace halfstep::c
