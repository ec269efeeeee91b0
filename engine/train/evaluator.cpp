#include "train/evaluator.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <utility>

#include "train/feed.h"

namespace halfstep::train {

Evaluator::Evaluator(const run::Workspace& workspace, std::vector<EvaluationProgram> programs,
                     std::vector<std::string> metrics, Lengths lengths, Ranks ranks)
    : metrics_(std::move(metrics)), lengths_(std::move(lengths)), ranks_(std::move(ranks)) {
  for (EvaluationProgram& made : programs) {
    const std::size_t part = parts_.size();
    parts_.push_back(std::make_unique<Part>(
        workspace, std::move(made),
        [this, part](const run::Program&, const run::Slot& slot) { read(*parts_[part], slot); }));
  }
}

Evaluation Evaluator::evaluate(const Dataset& set, const std::function<bool()>& stop) {
  set.check();
  if (set.count < 1) fail("evaluate", fmt::format("expected samples, got none in '{}'", set.name));
  std::vector<std::vector<Field>> fields;
  for (const auto& part : parts_) {
    fields.push_back(fed_fields("evaluate", set, *part->graph.samples, part->graph.ir));
    part->program.slots().drain();  // what an evaluation left that an exception ended, be it of `stop`
    part->batches.clear();          // one that could not be submitted
  }
  const std::int64_t size = parts_.front()->graph.samples->batch;
  std::vector<std::uint32_t> buckets = buckets_of(set, lengths_);
  BatchSampler sampler =
      buckets.empty() ? BatchSampler::evaluation(set.count, size) : BatchSampler::evaluation(std::move(buckets), size);
  results_.assign(static_cast<std::size_t>(sampler.batches_per_epoch()) * (1 + metrics_.size()), 0);
  data::HostBatch batch;
  std::int64_t i = 0;
  for (; i < sampler.batches_per_epoch() && !stop(); ++i) {
    if (i % ranks_.size() != ranks_.rank()) continue;
    const std::uint32_t bucket = sampler.bucket(i);
    Part& part = *parts_[bucket];
    data::gather(fields[bucket], sampler.batch(i), batch);
    part.program.fill(part.program.slots().acquire(), batch);
    part.batches.push_back(i);
    part.program.slots().submit();
  }
  for (const auto& part : parts_) part->program.slots().drain();
  if (ranks_.size() > 1) {  // exact: all terms but one are 0
    ranks_.exchange->begin_sum(results_, {});
    ranks_.exchange->wait();
  }
  return mean_over(sampler, i);
}

/// Loss and metrics are means over a batch's samples, so that each is weighted by how many different ones there are.
Evaluation Evaluator::mean_over(const BatchSampler& sampler, std::int64_t batches) const {
  Evaluation result;
  std::size_t next = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    const auto weight = static_cast<double>(sampler.samples(i));
    result.samples += sampler.samples(i);
    result.loss += weight * static_cast<double>(results_[next++]);
    for (const std::string& name : metrics_) {
      result.metrics[name] += weight * static_cast<double>(results_[next++]);
    }
  }
  result.loss /= static_cast<double>(result.samples);
  for (auto& [name, value] : result.metrics) value /= static_cast<double>(result.samples);
  return result;
}

std::uint64_t Evaluator::slot_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& part : parts_) bytes += part->program.slot_bytes();
  return bytes;
}

void Evaluator::read(Part& part, const run::Slot& slot) {
  const std::size_t outputs = 1 + metrics_.size();
  const std::size_t first = static_cast<std::size_t>(part.batches.front()) * outputs;
  part.batches.pop_front();
  for (std::size_t i = 0; i < outputs; ++i) results_[first + i] = part.program.mean_output(slot, i);
}

}  // namespace halfstep::train
