#pragma once

#include <halfstep/trainer.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/upload_ring.h"
#include "io/safetensors.h"
#include "state/buffers.h"
#include "step/report.h"
#include "step/slots.h"
#include "step/step_program.h"
#include "train/epoch_position.h"
#include "tune/tuner.h"
#include "vk/command/memory.h"
#include "vk/command/timeline.h"
#include "vk/device/context.h"
#include "vk/shader/pipelines.h"

namespace halfstep {

class Trainer::Impl {
 public:
  Impl(const Device& device, const Graph& graph, const TrainerOptions& options);
  ~Impl();

  // trainer_step.cpp
  void step();
  void step(const std::map<std::string, Values>& inputs);
  StepReport report();
  void finish();
  StepTotals take_totals();
  Evaluation evaluate(const Dataset& set, Weights weights);
  HostCosts host_costs() const;

  // trainer_profile.cpp
  std::vector<DispatchCost> profile(std::int64_t steps);
  std::vector<DispatchCost> profile(std::int64_t steps, const std::map<std::string, Values>& inputs);

  // trainer_record.cpp
  void watch(std::string_view pattern, std::uint64_t every);
  std::vector<TensorStatistics> take_records();
  std::vector<float> trace(std::string_view name);

  // trainer_checkpoint.cpp
  Checkpoint checkpoint(const std::map<std::string, std::string>& notes);
  void save_weights(const std::filesystem::path& path, Weights weights);
  ResumePoint load(const std::filesystem::path& path);
  LoadReport load_weights(const std::filesystem::path& path, const LoadOptions& options);

  // trainer_store.cpp
  std::vector<float> parameter(std::string_view name, Weights weights);
  void set_parameter(std::string_view name, std::span<const float> values);

  const PlanSummary& summary() const { return summary_; }
  std::string plan() const;  // plan_text.cpp
  std::string explain() const;

 private:
  /// What is known of the graph as the user wrote it, which need not outlive compile().
  struct InputInfo {
    std::string name;
    TensorType type;
  };

  std::string recomputation() const;  // plan_text.cpp

  // trainer.cpp
  step::StepProgram lower(tune::Tuner& tuner, const std::function<step::StepProgram(const plan::Target&)>& program);
  void make_buffers(const TrainerOptions& options);
  void place_data(const TrainerOptions& options);
  void make_slots();
  /// Samples in a step.
  std::int64_t step_batch() const { return elements({accumulate_, batch_shape_.front()}); }
  std::uint64_t store_bytes(plan::BufferId buffer) const { return state::bytes_of(buffer, store_form_); }
  step::StepOptions step_options() const { return {precision_, optimizer_, clip_norm_, accumulate_, average_decay_}; }
  void summarize();
  std::uint64_t arena_bytes_kept(const Graph& graph, TrainerOptions options) const;
  void start_sampling(std::uint64_t first_step, std::int64_t drawn);
  train::EpochSize epoch_size() const { return {set_->count, step_batch()}; }
  /// Batches drawn from the training set so far, counted from its first epoch on.
  std::int64_t drawn() const { return static_cast<std::int64_t>(submitted_) + drawn_ahead_; }
  std::array<const vk::Buffer*, state::buffers::table.size()> buffers() const;

  // trainer_record.cpp
  void make_recorded();
  step::Slots& slots_of_next_step();
  void read_records(const step::Slot& slot);
  void stop_where_broken(const step::Slot& slot);
  void stop_at_floor();
  std::string describe(const step::Watched& broken, std::uint64_t element, const step::Slot& slot);
  std::vector<float> values_of(const step::Recorded& tensor, const step::Slot& slot);
  float gradient_unscale(std::uint64_t first_element);

  // trainer_step.cpp
  void submit(step::Slots& slots, std::chrono::steady_clock::time_point start);
  void check_set() const;
  void check_inputs(const std::map<std::string, Values>& inputs) const;
  void fill_from_set(step::Slot& slot);
  void fill_from_values(step::Slot& slot, const std::map<std::string, Values>& inputs);
  void put(step::Slot& slot, std::size_t index, const Values& values);
  float reported(const step::Slot& slot, std::size_t value) const;
  void read_report(const step::Slot& slot);
  void read_evaluation(const step::Slot& slot);

  // trainer_profile.cpp
  std::vector<DispatchCost> profile(std::int64_t steps, const std::function<void(step::Slot&)>& fill);

  // trainer_store.cpp
  void initialize(std::uint64_t seed);
  void write_state(const state::StepState& state);
  state::StepState read_state();
  plan::BufferId best_store(const state::ParameterSlot& slot) const;
  TensorType best_type(const state::ParameterSlot& slot) const;
  void upload(const vk::Buffer& buffer, const state::ParameterLayout& layout, DType dtype,
              const std::vector<std::vector<float>>& values, std::uint64_t offset = 0);
  void upload(const vk::Buffer& buffer, const state::ParameterSlot& slot, DType dtype, std::span<const float> values,
              std::uint64_t offset = 0);
  void upload_weights(const std::vector<std::vector<float>>& values);
  void upload_averages(const std::vector<std::vector<float>>& values);
  void upload_states(const std::vector<std::vector<float>>& values);
  std::vector<float> download(const vk::Buffer& buffer, const state::ParameterSlot& slot, const TensorType& type);
  std::vector<float> download_weights(const state::ParameterSlot& slot);
  std::vector<float> download_averages(const state::ParameterSlot& slot);
  std::vector<float> download_weights(const state::ParameterSlot& slot, Weights weights);
  void check_averages(Weights weights) const;
  void average_weights();
  std::vector<float> download_state(const state::ParameterSlot& slot);
  std::vector<std::vector<float>> download_moments(const state::ParameterSlot& slot);
  void upload_moments(const std::vector<std::vector<std::vector<float>>>& values);
  std::vector<float> download_scales();
  void upload_scales(const std::vector<float>& values);
  float rate_after(std::uint32_t applied) const;
  std::pair<const state::ParameterSlot*, bool> slot_named(std::string_view name) const;

  // trainer_checkpoint.cpp
  io::Metadata metadata(const state::StepState& state) const;
  state::StepState state_from(const io::SafetensorsFile& file, const std::string& path) const;
  std::vector<float> scales_from(const io::SafetensorsFile& file, const std::string& path) const;

  Device device_;
  vk::Context& context_;
  plan::Target target_;  ///< the device's, with the choices that were made
  Precision precision_;
  Optimizer optimizer_;
  float clip_norm_;
  float average_decay_;
  std::uint32_t accumulate_;
  std::uint64_t seed_;
  io::Metadata about_;  ///< what checkpoints say of the model and what it is fed
  std::vector<std::string> metric_names_;
  std::vector<InputInfo> inputs_;  ///< fed with values
  Shape batch_shape_;              ///< of the samples, where a Feed gives them
  step::StepGraph graph_;
  state::StoreForm store_form_;
  const state::StoreLayout& layout_ = store_form_.layout;
  const state::WeightForm& form_ = store_form_.weights;
  step::StepProgram training_;
  step::StepProgram evaluation_;
  step::StepProgram averaged_evaluation_;
  vk::Pipelines pipelines_;
  std::array<vk::Buffer, state::buffers::table.size()> buffers_;
  std::unique_ptr<step::Slots> training_slots_;
  std::unique_ptr<step::Slots> evaluation_slots_;  ///< where there is a Feed
  std::unique_ptr<step::Slots> averaged_slots_;    ///< and averages
  /// The step with the recorder's dispatches in it, where it is wanted: for one step out of watch_every_.
  step::Watch watch_;
  std::uint64_t watch_every_ = 1;
  step::StepProgram recorded_;
  vk::Buffer recorded_arena_;
  std::unique_ptr<step::Slots> recorded_slots_;
  std::vector<TensorStatistics> records_;
  const Dataset* set_ = nullptr;
  std::optional<BatchSampler> sampler_;
  std::unique_ptr<data::UploadRing> ring_;  ///< where the set is not resident
  std::uint64_t submitted_ = 0;             ///< steps of the run, those before a checkpoint included
  /// Batches drawn less steps submitted: other than 0 after a checkpoint of another batch size or number of samples.
  std::int64_t drawn_ahead_ = 0;
  PlanSummary summary_;

  StepReport latest_;
  std::uint64_t overflowed_at_floor_ = 0;  ///< the step whose gradients overflowed with the loss scale at its floor
  StepTotals totals_;
  std::uint64_t finite_losses_ = 0;
  Evaluation evaluation_sums_;
  std::int64_t evaluation_left_ = 0;
  std::vector<double> host_microseconds_;
  std::uint64_t waits_for_batch_ = 0;  ///< of rings before ring_
  std::uint64_t waits_elsewhere_ = 0;
  vk::Timeline timeline_;  ///< last: it waits for the steps under way before what they use is gone
};

}  // namespace halfstep
