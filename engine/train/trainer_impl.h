#pragma once

#include <halfstep/error.h>
#include <halfstep/inspector.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "run/program.h"
#include "train/balancer.h"
#include "train/batches.h"
#include "train/buckets.h"
#include "train/checkpoints.h"
#include "train/evaluator.h"
#include "train/host_times.h"
#include "train/local_steps.h"
#include "train/memory_need.h"
#include "train/rank_exchange.h"
#include "train/recorder.h"
#include "train/reports.h"
#include "train/workspace.h"
#include "tune/tuner.h"

namespace halfstep {

/// What a trainer is made of, on any device.
struct Trainer::Origin {
  Origin(const Graph& written, const TrainerOptions& asked);
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;

  Graph graph;
  std::vector<Graph> shorter;  ///< of buckets
  TrainerOptions options;
  std::optional<Checkpoint> snapshot{};
  std::uint64_t snapshot_step = 0;
};

/// Training programs over a store, and the owners of what is around them. Trainer's and Inspector's functions go to
/// these owners.
class Trainer::Impl {
 public:
  using Fill = std::function<void(const run::Program&, run::Slot&)>;

  /// One of the graphs that are trained: of each bucket, or the only one.
  struct Part {
    step::StepGraph graph{};
    std::unique_ptr<run::Program> training{};  ///< null only where it could not be made for another share
    std::unique_ptr<train::Recorder> recorder{};
  };

  /// `origin` must outlive it.
  Impl(const Device& device, Origin& origin);

  /// Returns what `call` does with this. Where that finds the device lost, and there are other ranks, which would wait
  /// for this one, it ends them all. Whatever uses the device and is not for one rank only goes through it.
  template <typename Call>
  auto together(const Call& call) {
    try {
      return call(*this);
    } catch (const Error& error) {
      if (rank_exchange) rank_exchange->end_all(error);
      throw;
    }
  }
  /// Submits one step on what `fill` puts into its slot.
  void step(const Fill& fill);
  /// The same with a timestamp after every dispatch. `timed` must have been made.
  void timed_step(const Fill& fill);
  /// Submits as much of a step as takes the device `seconds`: of the one that it left open, or of one on what `fill`
  /// puts into its slot. Returns whether that was the end of it.
  bool run_for(double seconds, const Fill& fill);
  /// Whether steps are given neither values nor samples.
  bool reads_shared_only() const;
  /// See Trainer::record and Trainer::executed.
  void record(VkCommandBuffer commands);
  void executed();
  /// Waits for every step submitted, and reads their reports.
  void finish();
  /// See Trainer::synchronise.
  void synchronise();
  /// Reads the reports of steps that have finished.
  void poll();
  Evaluation evaluate(const Dataset& set, Weights weights, const std::function<bool()>& stop);
  Checkpoint checkpoint(const std::map<std::string, std::string>& notes);
  Checkpoint weights_only(Weights weights);
  ResumePoint load(const io::SafetensorsFile& file, const std::string& name);
  LoadReport load_weights(const std::filesystem::path& path, const LoadOptions& options);
  std::vector<float> parameter(std::string_view name, Weights weights);
  void set_parameter(std::string_view name, std::span<const float> values);
  /// Whether files are this rank's to write; others may take part in reading what they hold.
  bool writes_files() const { return options.ranks.rank() == 0; }
  /// The part of the trainer's own graph: of the longest bucket.
  Part& own() { return *parts.back(); }
  const Part& own() const { return *parts.back(); }
  /// Its program. Throws Error where there is none: it could not be made for another share of each step.
  run::Program& training() const;

  /// What steps are filled with: the next batch of the set or source, or values. Throws Error where there is none, or
  /// no such input.
  Fill from_supply();
  Fill from_values(const std::map<std::string, Values>& inputs);

  Origin& origin;
  const TrainerOptions& options;
  std::unique_ptr<train::Balancer> balancer;
  std::unique_ptr<train::RankExchange> rank_exchange;  ///< where there are other ranks
  std::unique_ptr<train::LocalSteps> local_steps;      ///< and these do not exchange gradients
  std::vector<std::unique_ptr<Part>> parts;            ///< the shortest first
  std::size_t last_part = 0;                           ///< of the step that was submitted last
  Workspace workspace;
  PlanSummary summary;
  std::unique_ptr<train::Reports> reports;
  std::unique_ptr<train::Batches> batches;
  std::unique_ptr<train::Evaluator> evaluator;           ///< where there is a Feed
  std::unique_ptr<train::Evaluator> averaged_evaluator;  ///< and averages
  /// As own().training with timestamps: while steps are timed, and where an error ended that, until others are.
  std::unique_ptr<run::Program> timed;
  std::unique_ptr<train::Checkpoints> checkpoints;
  train::HostTimes host_times;
  std::uint64_t waits_for_slot = 0;   ///< of steps, whichever program ran them
  std::uint64_t waits_elsewhere = 0;  ///< of steps, other than for slots, batches and ranks

 private:
  /// What is lowered before there is a store.
  struct Lowered {
    std::vector<step::StepProgram> training;  ///< of each part
    std::vector<train::EvaluationProgram> evaluation;
    std::vector<train::EvaluationProgram> averaged;

    std::vector<const step::StepProgram*> evaluations() const;
  };

  using Program = std::function<step::StepProgram(const plan::Target&)>;
  using Lower = std::function<step::StepProgram(const Program&)>;

  Lowered lower(const std::vector<train::BucketGraph>& graphs, const state::StoreSpec& spec, const step::Share& share,
                const Lower& made_of) const;
  void compile(const std::vector<train::BucketGraph>& graphs);
  Lowered lower_tuned(const std::vector<train::BucketGraph>& graphs, const state::StoreSpec& spec);
  void make_training(Part& part, step::StepProgram lowered);
  void take_share();
  void place_data(state::StoreSpec& spec);
  void place_set(state::StoreSpec& spec);
  train::MemoryNeed need_of(const state::StoreSpec& spec, const Lowered& lowered) const;
  void summarize(const train::BucketGraph& graph, const state::StoreSpec& spec, const Lowered& lowered,
                 const plan::Arena& arena);
  void make_programs(state::StoreSpec spec, Lowered lowered);
  void make_evaluators(Lowered& lowered, const std::vector<std::string>& metrics);
  /// A step, and the program that runs it.
  struct Step {
    std::size_t part;
    run::Program* program;
  };

  void stop_at_floor();
  void with_synchronised(const std::function<void()>& call);
  void keep_snapshot();
  void before_step();
  Step next_step();
  void submit_step(const Step& step, const Fill& fill);
  std::vector<run::Program*> programs() const;
  void submitted(const Step& step);
  void count_for_ranks();
  void keep_open(const Step& step);
  void end_open_step();
  void end_failed_step(const Fill& fill);

  std::array<std::uint64_t, 2> submits_{};  ///< of the step before the last one, and of the last one
  std::optional<Step> open_{};              ///< that is submitted in part: by run_for(), or since an error ended it
  bool failed_ = false;                     ///< the open step is one of step(), which an error ended
  bool share_taken_ = true;                 ///< every program is made for the balancer's present share
  std::array<std::uint64_t, 2> parts_{};    ///< of the call of run_for() before the last one, and of the last one
};

}  // namespace halfstep
