#pragma once

#include <halfstep/halfstep.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "samples/common/command_line.h"
#include "samples/common/data.h"
#include "samples/common/saving.h"

namespace samples {

/// How long to train.
struct Plan {
  std::int64_t batch_size = 32;  ///< samples in a step, over all ranks and micro-batches
  std::int64_t accumulate = 1;   ///< micro-batches in a step of each rank
  halfstep::Ranks ranks{};       ///< without the exchange, which micro_batch() sets
  std::int64_t epochs = 1;       ///< from the start of training, including epochs before a resume
  /// Receives the weights and running statistics after every epoch with a better test result than all before, those of
  /// the run that is resumed included.
  std::filesystem::path best{};
  halfstep::Weights weights = halfstep::Weights::current;  ///< which weights are tested and saved as the best
  const char* samples = "images";                          ///< what is trained on, in what is printed
  const char* test = "test";                               ///< what is tested on, likewise
  Beside beside{};                                         ///< what is saved besides checkpoints
  /// What a test finds besides the accuracy, by name, from 0 to 1.
  std::function<std::map<std::string, double>()> scores{};
};

/// Checks the files that the flags name, those of their folders, and `inputs`, which are read too: see check_outputs in
/// command_line.h. Throws Error where one that is to be written is of the data set.
void check_files(const CommonOptions& options, const Plan& plan, const std::vector<NamedFile>& inputs = {});

/// Adds --batch-size and --epochs.
void add_plan_options(CLI::App& app, Plan& plan);
/// Adds --accumulate, --exchange, --shard-state and their like, for programs that train on the ranks that mpirun
/// starts.
void add_rank_options(CLI::App& app, Plan& plan);
/// Makes the ranks that mpirun started those of the plan. Returns the samples of one micro-batch of one rank, which is
/// the batch of the graph. Throws Error where the batch size cannot be divided so.
std::int64_t micro_batch(Plan& plan);

/// Adds --learning-rate, and --loss-scaling-factor.
void add_learning_rate(CLI::App& app, float& rate, const std::string& help);
void add_loss_scale(CLI::App& app, float& scale, const std::string& help);
/// Adds --rounding, nearest or stochastic.
void add_rounding(CLI::App& app, std::optional<halfstep::Rounding>& rounding, const std::string& help);

/// `training` as the flags that these programs share want it: its seed, watched, reproducible, and as the plan says of
/// accumulation and ranks.
halfstep::TrainerOptions with_flags(const CommonOptions& common, const Plan& plan, halfstep::TrainerOptions training);

/// Trains, tests after every epoch, reports and saves as the flags request. During training, Ctrl-C, SIGTERM and SIGHUP
/// stop it after the current step, and it saves. A save that fails is a warning, except the last one: then Error is
/// thrown at the end. Returns the program's exit code.
int train(halfstep::Trainer& trainer, const halfstep::Device& device, const halfstep::Precision& precision,
          const Data& data, const Plan& plan, const CommonOptions& options);

}  // namespace samples
