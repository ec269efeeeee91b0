#include "train/feed.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "step/report.h"
#include "train/labels.h"

namespace halfstep::train {
namespace {

/// Every input of a feed, with the augmentation of `samples`.
std::vector<std::pair<InputFeed, Augmentation>> inputs_of(const Feed& feed) {
  std::vector<std::pair<InputFeed, Augmentation>> all;
  if (feed.samples.defined()) all.push_back({{feed.samples, "samples", feed.mean, feed.stddev}, feed.augmentation});
  if (feed.labels.defined()) all.push_back({{feed.labels, "labels"}, {}});
  for (const InputFeed& input : feed.inputs) all.push_back({input, {}});
  return all;
}

Shape sample_shape(Tensor input) {
  Shape shape = input.shape();
  shape.erase(shape.begin());
  return shape;
}

void check_input(const graph::Ir& ir, Tensor input, const std::set<graph::ValueId>& others, std::int64_t batch) {
  if (ir.values[input.id()].origin != graph::Origin::input) {
    fail("feed", fmt::format("expected inputs of the graph, got '{}'", input.name()));
  }
  if (others.contains(input.id())) {
    fail("feed", fmt::format("expected each input once, got '{}' twice", input.name()));
  }
  if (input.rank() < 1 || (batch != 0 && input.dim(0) != batch)) {
    fail("feed", fmt::format("expected inputs {{batch, ...}} of one batch, got {} for '{}'{}", to_string(input.type()),
                             input.name(), batch != 0 ? fmt::format(" beside a batch of {}", batch) : ""));
  }
}

/// What an input is fed from where no set says so. `samples`: it is Feed::samples.
Field assumed_field(const std::string& name, Tensor input, bool samples) {
  Field field{.name = name, .shape = sample_shape(input)};
  if (!samples) field.type = is_floating(input.dtype()) ? ElementType::f32 : ElementType::u32;
  return field;
}

Field find_field(const TrainingData& data, const std::string& name, Tensor input, bool samples) {
  if (data.fields.empty()) return assumed_field(name, input, samples);
  const auto found = std::ranges::find(data.fields, name, &Field::name);
  if (found != data.fields.end()) return *found;
  std::vector<std::string> names;
  for (const Field& field : data.fields) names.push_back(fmt::format("'{}'", field.name));
  fail("feed", fmt::format("expected a field '{}' in '{}' for the input '{}', got {}", name, data.name, input.name(),
                           fmt::join(names, ", ")));
}

/// What an input of `length` reads of a field: the start of its samples, if they are longer.
Field start_of(Field field, Tensor input, std::int64_t length) {
  const Shape wanted = sample_shape(input);
  const bool longer =
      !field.shape.empty() && !wanted.empty() && wanted.front() == length && field.shape.front() > length;
  if (!longer) return field;
  field.stride = field.step();
  field.shape.front() = length;
  return field;
}

/// Throws Error unless the field's elements can become the input's, and its samples the input's samples.
void check_conversion(const Field& field, Tensor input) {
  const Shape wanted = sample_shape(input);
  const bool floats = is_floating(input.dtype());
  const bool bytes = field.type == ElementType::u8 && floats;
  const bool converts = floats ? bytes || field.type == ElementType::f32 : field.type != ElementType::f32;
  if (!converts || (floats && input.dtype() != DType::f32)) {
    fail("feed",
         fmt::format("expected {} for the input '{}', got '{}' of {}",
                     !floats    ? "a field of u8, u16 or u32"
                     : converts ? "an input of f32"
                                : "a field of u8 or f32",
                     input.name(), field.name, converts ? to_string(input.type()) : std::string(name(field.type))),
         converts ? "the precision policy decides what type it is computed in" : "");
  }
  const bool images = bytes && wanted.size() == 3 && field.shape.size() == 3;
  if (field.shape != wanted && !(images && (field.shape[2] == wanted[2] || field.shape[2] == 1))) {
    fail(
        "feed",
        fmt::format("expected samples of {} for '{}', got {}", to_string(wanted), input.name(), to_string(field.shape)),
        "only images {height, width, channels} are resized, and only a single channel is repeated");
  }
  if (bytes && (wanted.empty() || field.first != 0 || field.stride != 0)) {
    fail("feed",
         fmt::format("expected bytes {{...}} of at least one axis, one sample after the other, for '{}', got {}",
                     input.name(), to_string(field.shape)));
  }
}

void require(bool condition, const char* name, std::string_view range, double value) {
  if (!condition) fail("feed", fmt::format("expected {} to be {}, got {}", name, range, value));
}

void check_augmentation(const Augmentation& augmentation, const Field& field, const Shape& input) {
  if (augmentation == Augmentation{}) return;
  if (input.size() != 3 || field.type != ElementType::u8) {
    fail("feed", fmt::format("expected images {{height, width, channels}} of u8 to augment, got {} {}",
                             name(field.type), to_string(input)));
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

void check_normalisation(const InputFeed& feed, const Field& field) {
  const Shape sample = sample_shape(feed.input);
  const std::int64_t channels = sample.empty() ? 1 : sample.back();
  const bool floats = is_floating(feed.input.dtype());
  const bool bytes = field.type == ElementType::u8;
  for (const std::vector<float>* values : {&feed.mean, &feed.stddev}) {
    const bool one_each = std::ssize(*values) == channels && (channels <= 4 || !bytes);
    if (values->size() != 1 && !one_each) {
      fail("feed", fmt::format("expected one mean and std for '{}', or {} for as many channels{}, got {}",
                               feed.input.name(), channels, bytes ? " (at most 4)" : "", values->size()));
    }
  }
  for (const float mean : feed.mean) {
    if (!std::isfinite(mean)) fail("feed", fmt::format("expected a finite mean, got {}", mean));
  }
  for (const float stddev : feed.stddev) {
    if (!std::isfinite(stddev) || !std::isnormal(stddev) || stddev <= 0) {
      fail("feed", fmt::format("expected a positive std, got {}", stddev));
    }
  }
  if (!floats && (feed.mean != std::vector{0.0F} || feed.stddev != std::vector{1.0F})) {
    fail("feed",
         fmt::format("expected integers that are not normalised for '{}', got a mean or std", feed.input.name()));
  }
}

}  // namespace

TrainingData::TrainingData(const TrainerOptions& options) : source(options.source) {
  if (options.training_set != nullptr) {
    name = options.training_set->name;
    count = options.training_set->count;
    fields = options.training_set->all_fields();
  } else if (source != nullptr) {
    name = source->name;
    count = source->count;
    fields = source->fields;
  }
}

void check_feed_values(const Feed& feed, const graph::Ir& ir) {
  // Without further inputs it is the two that are meant, if the graph has two.
  if (feed.inputs.empty() || feed.samples.defined()) {
    graph::expect_value("feed", "an input for the samples", ir, feed.samples, "set Feed::samples");
  }
  const bool others = ir.of(graph::Origin::input).size() > 1;
  if (feed.labels.defined() || (feed.inputs.empty() && others)) {
    graph::expect_value("feed", "an input for the labels", ir, feed.labels, "set Feed::labels");
  }
  for (const InputFeed& each : feed.inputs) {
    graph::expect_value("feed", "an input", ir, each.input, "set InputFeed::input");
  }
  if (!feed.samples.defined() && feed.augmentation != Augmentation{}) {
    fail("feed", "expected an input for the samples that are augmented, got none", "set Feed::samples");
  }
}

step::SampleInputs sample_inputs(const Feed& feed, const graph::Ir& ir, const TrainingData& data, std::int64_t length) {
  step::SampleInputs result;
  std::set<graph::ValueId> fed;
  for (const auto& [each, augmentation] : inputs_of(feed)) {
    const Tensor input = each.input;
    check_input(ir, input, fed, result.batch);
    fed.insert(input.id());
    result.batch = input.dim(0);
    const std::string name = each.field.empty() ? input.name() : each.field;
    const bool samples = feed.samples.defined() && input.id() == feed.samples.id();
    const Field stored = find_field(data, name, input, samples);
    const Field field = start_of(stored, input, length);
    check_conversion(field, input);
    check_normalisation(each, field);
    check_augmentation(augmentation, field, sample_shape(input));
    step::FieldInput& made =
        result.fields.emplace_back(step::FieldInput{.input = input.id(),
                                                    .field = name,
                                                    .type = field.type,
                                                    .stored = stored.shape,
                                                    .length = field.shape == stored.shape ? 0 : length,
                                                    .mean = each.mean,
                                                    .stddev = each.stddev,
                                                    .augmentation = augmentation});
    if (!made.is_normalised()) continue;
    made.normalisation = result.table_bytes;
    result.table_bytes += step::next_place(step::normalisation_table(made).size() * sizeof(std::array<float, 2>));
  }
  return result;
}

std::vector<Field> fed_fields(std::string_view where, const Dataset& set, const step::StepGraph& graph) {
  const std::vector<Field> all = set.all_fields();
  std::vector<Field> result;
  for (const step::FieldInput& input : graph.samples->fields) {
    const auto found = std::ranges::find(all, input.field, &Field::name);
    if (found == all.end() || found->type != input.type || found->shape != input.stored) {
      const std::string got = found == all.end()
                                  ? "none"
                                  : fmt::format("{} of {} {}", set.count, name(found->type), to_string(found->shape));
      fail(where, fmt::format("expected '{}' of {} {} in '{}', got {}", input.field, name(input.type),
                              to_string(input.stored), set.name, got));
    }
    Field& field = result.emplace_back(*found);
    if (input.length > 0) field.stride = field.step();
    field.shape = input.read();
    for (const Classes& classes : classes_of(graph.ir, graph.outputs, input.input)) {
      const std::int64_t labels = classes.largest_in(*found);
      if (labels <= classes.count) continue;
      fail("feed", fmt::format("expected a set of at most {} classes, as many as {} has logits, got {} in '{}'",
                               classes.count, classes.judge, labels, set.name));
    }
  }
  return result;
}

}  // namespace halfstep::train
