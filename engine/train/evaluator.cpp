#include "train/evaluator.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "train/feed.h"

namespace halfstep::train {

Evaluator::Evaluator(run::Workspace workspace, step::StepGraph graph, step::StepProgram lowered,
                     std::vector<std::string> metrics)
    : graph_(std::move(graph)),
      batch_(graph_.ir.values[graph_.samples->samples].type.shape.front()),
      metrics_(std::move(metrics)),
      program_(std::move(workspace), std::move(lowered),
               [this](const run::Program&, const run::Slot& slot) { read(slot); }) {}

void Evaluator::check(const Dataset& set) const {
  set.check();
  const Shape& stored = graph_.samples->stored;
  if (set.sample_shape != stored || set.count < 1) {
    fail("evaluate", fmt::format("expected samples of {}, got {} of {} in '{}'", to_string(stored), set.count,
                                 to_string(set.sample_shape), set.name));
  }
  check_classes(set, graph_.ir, graph_.samples->labels);
}

Evaluation Evaluator::evaluate(const Dataset& set, const std::function<bool()>& stop) {
  check(set);
  sums_ = {};
  left_ = set.count;
  run::Slots& slots = program_.slots();
  BatchSampler sampler = BatchSampler::evaluation(set.count, batch_);
  data::HostBatch batch;
  for (std::int64_t i = 0; i < sampler.batches_per_epoch() && !stop(); ++i) {
    data::gather(set, sampler.batch(i), batch);
    program_.fill(slots.acquire(), batch);
    slots.submit();
  }
  slots.drain();
  Evaluation result = std::exchange(sums_, {});
  result.loss /= static_cast<double>(result.samples);
  for (auto& [name, value] : result.metrics) value /= static_cast<double>(result.samples);
  return result;
}

/// Loss and metrics are means over the batch's samples, so that each is weighted by how many there are.
void Evaluator::read(const run::Slot& slot) {
  const std::int64_t count = std::min(left_, batch_);
  left_ -= count;
  sums_.samples += count;
  const auto weight = static_cast<double>(count);
  sums_.loss += weight * static_cast<double>(program_.mean_output(slot, 0));
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    sums_.metrics[metrics_[i]] += weight * static_cast<double>(program_.mean_output(slot, 1 + i));
  }
}

}  // namespace halfstep::train
