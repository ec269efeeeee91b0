#include "train/evaluator.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <utility>

#include "train/feed.h"

namespace halfstep::train {

Evaluator::Evaluator(const run::Workspace& workspace, std::vector<EvaluationProgram> programs,
                     std::vector<std::string> metrics, Lengths lengths)
    : metrics_(std::move(metrics)), lengths_(std::move(lengths)) {
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
    part->program.slots().drain();  // what an evaluation left that `stop` ended with an exception
  }
  sums_ = {};
  const std::int64_t size = parts_.front()->graph.samples->batch;
  std::vector<std::uint32_t> buckets = buckets_of(set, lengths_);
  BatchSampler sampler =
      buckets.empty() ? BatchSampler::evaluation(set.count, size) : BatchSampler::evaluation(std::move(buckets), size);
  data::HostBatch batch;
  for (std::int64_t i = 0; i < sampler.batches_per_epoch() && !stop(); ++i) {
    const std::uint32_t bucket = sampler.bucket(i);
    Part& part = *parts_[bucket];
    data::gather(fields[bucket], sampler.batch(i), batch);
    part.program.fill(part.program.slots().acquire(), batch);
    part.counts.push_back(sampler.samples(i));
    part.program.slots().submit();
  }
  for (const auto& part : parts_) part->program.slots().drain();
  Evaluation result = std::exchange(sums_, {});
  result.loss /= static_cast<double>(result.samples);
  for (auto& [name, value] : result.metrics) value /= static_cast<double>(result.samples);
  return result;
}

std::uint64_t Evaluator::slot_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& part : parts_) bytes += part->program.slot_bytes();
  return bytes;
}

/// Loss and metrics are means over the batch's samples, so that each is weighted by how many different ones there are.
void Evaluator::read(Part& part, const run::Slot& slot) {
  const std::int64_t count = part.counts.front();
  part.counts.pop_front();
  sums_.samples += count;
  const auto weight = static_cast<double>(count);
  sums_.loss += weight * static_cast<double>(part.program.mean_output(slot, 0));
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    sums_.metrics[metrics_[i]] += weight * static_cast<double>(part.program.mean_output(slot, 1 + i));
  }
}

}  // namespace halfstep::train
