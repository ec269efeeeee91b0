#include "train/evaluator.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <utility>

#include "train/feed.h"

namespace halfstep::train {

Evaluator::Evaluator(run::Workspace workspace, step::StepGraph graph, step::StepProgram lowered,
                     std::vector<std::string> metrics)
    : graph_(std::move(graph)),
      metrics_(std::move(metrics)),
      program_(std::move(workspace), std::move(lowered),
               [this](const run::Program&, const run::Slot& slot) { read(slot); }) {}

Evaluation Evaluator::evaluate(const Dataset& set, const std::function<bool()>& stop) {
  set.check();
  if (set.count < 1) fail("evaluate", fmt::format("expected samples, got none in '{}'", set.name));
  const std::vector<Field> fields = fed_fields("evaluate", set, *graph_.samples, graph_.ir);
  run::Slots& slots = program_.slots();
  slots.drain();  // what an evaluation left that `stop` ended with an exception
  sums_ = {};
  BatchSampler sampler = BatchSampler::evaluation(set.count, graph_.samples->batch);
  data::HostBatch batch;
  for (std::int64_t i = 0; i < sampler.batches_per_epoch() && !stop(); ++i) {
    data::gather(fields, sampler.batch(i), batch);
    program_.fill(slots.acquire(), batch);
    counts_.push_back(sampler.samples(i));
    slots.submit();
  }
  slots.drain();
  Evaluation result = std::exchange(sums_, {});
  result.loss /= static_cast<double>(result.samples);
  for (auto& [name, value] : result.metrics) value /= static_cast<double>(result.samples);
  return result;
}

/// Loss and metrics are means over the batch's samples, so that each is weighted by how many different ones there are.
void Evaluator::read(const run::Slot& slot) {
  const std::int64_t count = counts_.front();
  counts_.pop_front();
  sums_.samples += count;
  const auto weight = static_cast<double>(count);
  sums_.loss += weight * static_cast<double>(program_.mean_output(slot, 0));
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    sums_.metrics[metrics_[i]] += weight * static_cast<double>(program_.mean_output(slot, 1 + i));
  }
}

}  // namespace halfstep::train
