#pragma once

#include <halfstep/data.h>
#include <halfstep/trainer.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/program.h"
#include "train/buckets.h"
#include "train/labels.h"

namespace halfstep::train {

/// A program that evaluates, and its graph, which is fed with samples.
struct EvaluationProgram {
  step::StepGraph graph;
  step::StepProgram lowered;  ///< step::evaluation_program of `graph`
};

/// Loss and metrics over whole sets, by programs of its own over a store that others may share.
class Evaluator {
 public:
  /// A program for each of `lengths`, in their order; one if there are none. `metrics` names their outputs after the
  /// loss.
  Evaluator(const run::Workspace& workspace, std::vector<EvaluationProgram> programs, std::vector<std::string> metrics,
            Lengths lengths = {}, Ranks ranks = {});

  /// Every sample counts once. Waits for the results. `stop` is called before each batch and ends the evaluation early.
  /// Ranks share the batches, and each gets the result that one process would which stops where the first of them does.
  /// Throws Error if the samples are not what the graphs are fed with, and on every rank if ranks have other ones.
  Evaluation evaluate(const Dataset& set, const std::function<bool()>& stop);
  /// Bytes of what its programs' runs are given and give back.
  std::uint64_t slot_bytes() const;

 private:
  struct Part {
    Part(const run::Workspace& workspace, EvaluationProgram made, run::Program::ReadReport read)
        : graph(std::move(made.graph)), program(workspace, std::move(made.lowered), std::move(read)) {}

    step::StepGraph graph;
    std::vector<std::optional<JudgedRows>> rows{};  ///< that the loss and each metric are means over, if not samples
    std::deque<std::int64_t> batches{};             ///< whose reports have yet to be read
    run::Program program;
  };
  /// What the loss, or a metric, adds to its mean over the set.
  struct Term {
    float mean = 0;  ///< over a batch
    float rows = 0;  ///< of the batch
  };
  /// Of a batch: the loss's and each metric's.
  std::span<Term> terms(std::int64_t batch);
  void count_rows(const Part& part, const data::HostBatch& batch, std::int64_t repetitions, std::span<Term> to) const;
  void read(Part& part, const run::Slot& slot);
  /// `end`: the first batch that this rank did not evaluate. Returns the first that is not evaluated on some rank.
  std::int64_t exchange_terms(std::int64_t end);
  Evaluation mean_over(const BatchSampler& sampler, std::int64_t batches);

  std::vector<std::string> metrics_;
  Lengths lengths_;
  Ranks ranks_;
  std::vector<Term> terms_;  ///< of each batch
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace halfstep::train
