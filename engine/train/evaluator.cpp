#include "train/evaluator.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "train/feed.h"
#include "train/rank_agreement.h"

namespace halfstep::train {

Evaluator::Evaluator(const run::Workspace& workspace, std::vector<EvaluationProgram> programs,
                     std::vector<std::string> metrics, Lengths lengths, Ranks ranks)
    : metrics_(std::move(metrics)), lengths_(std::move(lengths)), ranks_(std::move(ranks)) {
  for (EvaluationProgram& made : programs) {
    const std::size_t number = parts_.size();
    Part& part = *parts_.emplace_back(std::make_unique<Part>(
        workspace, std::move(made),
        [this, number](const run::Program&, const run::Slot& slot) { read(*parts_[number], slot); }));
    for (const graph::ValueId output : part.graph.outputs) {
      part.rows.push_back(judged_rows(part.graph.ir, output, *part.graph.samples));
    }
  }
}

Evaluation Evaluator::evaluate(const Dataset& set, const std::function<bool()>& stop) {
  set.check();
  if (set.count < 1) fail("evaluate", fmt::format("expected samples, got none in '{}'", set.name));
  std::vector<std::vector<Field>> fields;
  for (const auto& part : parts_) {
    fields.push_back(fed_fields("evaluate", set, part->graph));
    part->program.slots().drain();  // what an evaluation left that an exception ended, be it of `stop`
    part->batches.clear();          // one that could not be submitted
  }
  const std::int64_t size = parts_.front()->graph.samples->batch;
  std::vector<std::uint32_t> buckets = buckets_of(set, lengths_);
  if (ranks_.size() > 1) check_same("evaluate", *ranks_.exchange, std::array{set_fact(set, fields.back(), buckets)});
  BatchSampler sampler =
      buckets.empty() ? BatchSampler::evaluation(set.count, size) : BatchSampler::evaluation(std::move(buckets), size);
  terms_.assign(static_cast<std::size_t>(sampler.batches_per_epoch()) * (1 + metrics_.size()), {});
  data::HostBatch batch;
  std::int64_t i = 0;
  for (; i < sampler.batches_per_epoch() && !(stop && stop()); ++i) {
    if (i % ranks_.size() != ranks_.rank()) continue;
    const std::uint32_t bucket = sampler.bucket(i);
    Part& part = *parts_[bucket];
    data::gather(fields[bucket], sampler.batch(i), batch);
    count_rows(part, batch, size / sampler.samples(i), terms(i));
    part.program.fill(part.program.slots().acquire(), batch);
    part.batches.push_back(i);
    part.program.slots().submit();
  }
  for (const auto& part : parts_) part->program.slots().drain();
  return mean_over(sampler, ranks_.size() > 1 ? exchange_terms(i) : i);
}

std::span<Evaluator::Term> Evaluator::terms(std::int64_t batch) {
  const std::size_t each = 1 + metrics_.size();
  return std::span(terms_).subspan(static_cast<std::size_t>(batch) * each, each);
}

/// A batch of fewer samples has each several times.
void Evaluator::count_rows(const Part& part, const data::HostBatch& batch, std::int64_t repetitions,
                           std::span<Term> to) const {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::optional<JudgedRows>& rows = part.rows[i];
    to[i].rows =
        static_cast<float>((rows ? rows->count(batch.fields[rows->field]) : part.graph.samples->batch) / repetitions);
  }
}

std::int64_t Evaluator::exchange_terms(std::int64_t end) {
  std::vector<std::int64_t> each(static_cast<std::size_t>(ranks_.size()), end);
  std::vector<std::size_t> places;
  for (std::size_t rank = 1; rank <= each.size(); ++rank) places.push_back(rank * sizeof end);
  ranks_.exchange->begin_gather(std::as_writable_bytes(std::span(each)), places);
  std::vector<float> all;
  for (const Term& term : terms_) all.insert(all.end(), {term.mean, term.rows});
  ranks_.exchange->begin_sum(all, {});  // exact: of each number all but one are 0
  ranks_.exchange->wait();
  for (std::size_t i = 0; i < terms_.size(); ++i) terms_[i] = {all[2 * i], all[2 * i + 1]};
  return std::ranges::min(each);
}

Evaluation Evaluator::mean_over(const BatchSampler& sampler, std::int64_t batches) {
  Evaluation result;
  std::vector<double> sums(1 + metrics_.size());
  std::vector<double> rows(sums.size());
  for (std::int64_t i = 0; i < batches; ++i) {
    result.samples += sampler.samples(i);
    const std::span<const Term> of_batch = terms(i);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const auto [mean, count] = of_batch[k];
      sums[k] += static_cast<double>(count) * static_cast<double>(mean);
      rows[k] += static_cast<double>(count);
    }
  }
  result.loss = sums[0] / rows[0];
  for (std::size_t k = 0; k < metrics_.size(); ++k) result.metrics[metrics_[k]] = sums[k + 1] / rows[k + 1];
  return result;
}

std::uint64_t Evaluator::slot_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& part : parts_) bytes += part->program.slot_bytes();
  return bytes;
}

void Evaluator::read(Part& part, const run::Slot& slot) {
  const std::span<Term> to = terms(part.batches.front());
  part.batches.pop_front();
  for (std::size_t i = 0; i < to.size(); ++i) to[i].mean = part.program.mean_output(slot, i);
}

}  // namespace halfstep::train
