#include "train/buckets.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace halfstep::train {
namespace {

/// What the graphs of all buckets must agree on, as text for an error.
std::string text_of(const state::ParameterEntry& entry) {
  return fmt::format("'{}' {}{}", entry.name, to_string(entry.type), entry.training.unreached ? ", not trained," : "");
}

void check_entries(std::string_view what, const state::ParameterLayout& shorter, const state::ParameterLayout& own,
                   std::int64_t length) {
  const std::vector<state::ParameterEntry>& got = shorter.entries();
  const std::vector<state::ParameterEntry>& want = own.entries();
  for (std::size_t i = 0; i < std::max(got.size(), want.size()); ++i) {
    const bool both = i < got.size() && i < want.size();
    if (both && got[i].name == want[i].name && got[i].type == want[i].type && got[i].training == want[i].training) {
      continue;
    }
    fail("buckets",
         fmt::format("expected the trainer's {} in the graph of length {}, got {} in the place of {}", what, length,
                     i < got.size() ? text_of(got[i]) : "none", i < want.size() ? text_of(want[i]) : "none"),
         "make every graph by the same function");
  }
}

/// How a field is fed, apart from how much of it is read.
auto feeding(const step::FieldInput& input) {
  return std::tie(input.field, input.type, input.stored, input.mean, input.stddev, input.augmentation);
}

template <Element T>
std::vector<std::uint32_t> buckets_of(const Dataset& set, const Field& field, const Lengths& lengths) {
  const std::span values(reinterpret_cast<const T*>(field.data.data()), field.data.size() / sizeof(T));  // NOLINT
  std::vector<std::uint32_t> buckets;
  for (std::int64_t i = 0; i < set.count; ++i) {
    const auto length = static_cast<std::int64_t>(values[static_cast<std::size_t>(field.first + i * field.step())]);
    const auto bucket = std::ranges::lower_bound(lengths.lengths, length);
    if (bucket == lengths.lengths.end()) {
      fail("buckets", fmt::format("expected samples of lengths up to {} in '{}', got {} for sample {}",
                                  lengths.lengths.back(), set.name, length, i));
    }
    buckets.push_back(static_cast<std::uint32_t>(bucket - lengths.lengths.begin()));
  }
  return buckets;
}

void check_buckets(const TrainerOptions& options) {
  const Buckets& buckets = *options.buckets;
  if (!options.feed || options.training_set == nullptr) {
    fail("buckets",
         fmt::format("expected a feed and a training set, got {}", options.source != nullptr ? "a source" : "none"),
         "the lengths of its samples decide on their buckets");
  }
  std::int64_t last = 0;
  for (const Bucket& bucket : buckets.shorter) {
    if (bucket.length <= last || bucket.length >= buckets.longest) {
      fail("buckets", fmt::format("expected lengths that increase and are below {}, got {} after {}", buckets.longest,
                                  bucket.length, last));
    }
    last = bucket.length;
    if (bucket.graph == nullptr) fail("buckets", fmt::format("expected a graph of length {}, got none", last));
    const bool same =
        std::ranges::equal(bucket.metrics, options.metrics, {}, &decltype(bucket.metrics)::value_type::first,
                           &decltype(bucket.metrics)::value_type::first);
    if (!same) fail("buckets", fmt::format("expected the trainer's metrics for length {}, got others", last));
  }
  if (buckets.longest < 1) fail("buckets", fmt::format("expected a positive longest length, got {}", buckets.longest));
}

}  // namespace

std::vector<BucketGraph> bucket_graphs(const Graph& graph, const TrainerOptions& options) {
  std::vector<BucketGraph> graphs;
  if (options.buckets) {
    check_buckets(options);
    for (const Bucket& bucket : options.buckets->shorter) {
      BucketGraph& made = graphs.emplace_back(BucketGraph{bucket.graph, options, bucket.length});
      made.options.loss = bucket.loss;
      made.options.metrics = bucket.metrics;
      made.options.feed = bucket.feed;
      made.options.log = {};  // it is said once, of the trainer's own
    }
  }
  graphs.push_back({&graph, options, options.buckets ? options.buckets->longest : 0});
  return graphs;
}

void check_bucket(const step::StepGraph& shorter, const step::StepGraph& own, std::int64_t length) {
  const state::StoreLayout got = step::layout_of(shorter);
  const state::StoreLayout want = step::layout_of(own);
  check_entries("parameters", got.parameters, want.parameters, length);
  check_entries("states", got.states, want.states, length);
  if (shorter.samples->batch != own.samples->batch) {
    fail("buckets", fmt::format("expected the trainer's batch of {} in the graph of length {}, got {}",
                                own.samples->batch, length, shorter.samples->batch));
  }
  if (!std::ranges::equal(shorter.samples->fields, own.samples->fields,
                          [](const auto& a, const auto& b) { return feeding(a) == feeding(b); })) {
    fail("buckets", fmt::format("expected the trainer's feed for length {}, got another", length),
         "the same fields in the same order");
  }
}

Lengths lengths_of(const TrainerOptions& options) {
  if (!options.buckets) return {};
  Lengths result{options.buckets->field};
  for (const Bucket& bucket : options.buckets->shorter) result.lengths.push_back(bucket.length);
  result.lengths.push_back(options.buckets->longest);
  return result;
}

std::vector<std::uint32_t> buckets_of(const Dataset& set, const Lengths& lengths) {
  if (lengths.lengths.empty()) return {};
  const std::vector<Field> fields = set.all_fields();
  const auto field = std::ranges::find(fields, lengths.field, &Field::name);
  const bool usable = field != fields.end() && field->type != ElementType::f32 && elements(field->shape) == 1;
  if (!usable) {
    fail("buckets",
         fmt::format("expected integers {{}} '{}' in '{}', got {}", lengths.field, set.name,
                     field == fields.end() ? "none" : fmt::format("{} {}", name(field->type), to_string(field->shape))),
         "Buckets::field names each sample's length");
  }
  if (field->type == ElementType::u8) return buckets_of<std::uint8_t>(set, *field, lengths);
  if (field->type == ElementType::u16) return buckets_of<std::uint16_t>(set, *field, lengths);
  return buckets_of<std::uint32_t>(set, *field, lengths);
}

}  // namespace halfstep::train
