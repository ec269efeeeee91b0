#include <halfstep/error.h>
#include <halfstep/predictor.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/held.h"
#include "passes/precision.h"
#include "run/program.h"
#include "train/checkpoint_reader.h"
#include "train/prediction_graph.h"
#include "train/shared_memory.h"
#include "train/step_graph.h"
#include "train/stored_values.h"
#include "train/workspace.h"
#include "tune/tuner.h"

namespace halfstep {
namespace {

/// Throws Error for a precision that cannot be, or that asks for what only a trainer does.
void check_predicted(const Precision& precision) {
  if (precision.stop_on.any()) {
    fail("predictor", "expected a precision without stop_on, got one with it",
         "a trainer stops at what its steps find");
  }
  train::check_precision(precision, {});
  train::check_scale(precision.loss_scale, Sgd{});  // which takes any that some optimizer does
}

/// What programs over a store of store_form() compute in: the precision's forward pass. The store has f32 weights, with
/// a copy where operators read a narrow type, and nothing that only training needs.
Precision of_forward_pass(Precision precision) {
  precision.weights = DType::f32;
  precision.moments = DType::f32;
  precision.gradient_scales = GradientScales::none;
  return precision;
}

/// A store for the weights of a prediction and what is folded of them, which reads no gradients and trains nothing.
state::StoreSpec store_form(const train::FoldedPrediction& prediction, const Precision& precision) {
  const graph::Ir& ir = prediction.rest.ir;
  std::vector<graph::ValueId> parameters = prediction.rest.parameters;
  parameters.insert(parameters.end(), prediction.weights.parameters.begin(), prediction.weights.parameters.end());
  std::ranges::sort(parameters);
  parameters.erase(std::ranges::unique(parameters).begin(), parameters.end());
  // Those that are read in f32 come first: masters end after the last of them.
  std::ranges::stable_partition(parameters,
                                [&](graph::ValueId value) { return ir.values[value].type.dtype == DType::f32; });
  std::vector<graph::ValueId> states = prediction.rest.states;
  for (const graph::ValueId state : prediction.weights.states) {
    if (std::ranges::find(states, state) == states.end()) states.push_back(state);
  }
  std::ranges::sort(states);
  const auto frozen = [](std::size_t count) { return std::vector<state::Training>(count, {.frozen = true}); };
  return {.layout = {.parameters = {ir, parameters, frozen(parameters.size())},
                     .states = {ir, states, frozen(states.size())}},
          .precision = precision,
          .weights = state::weight_storage(of_forward_pass(precision))};
}

}  // namespace

class Predictor::Impl {
 public:
  /// Over the weights of a trainer.
  Impl(run::Workspace workspace, const Graph& graph, Tensor output, const SharedBuffers& shared, Weights weights)
      : workspace_(std::move(workspace)), precision_(workspace_.store->spec().precision), weights_(weights) {
    workspace_.store->check(weights);
    *loaded_ = true;
    const step::StepGraph prediction = sharing(train::prediction_graph(graph, output, precision_), shared);
    make_caches(prediction);
    program_ = make_program(prediction, precision_);
  }

  /// Over the weights and caches of another one.
  Impl(const Impl& other, const Graph& graph, Tensor output, const SharedBuffers& shared)
      : workspace_(other.workspace_), precision_(other.precision_), weights_(other.weights_), loaded_(other.loaded_) {
    const Precision& precision = workspace_.store->spec().precision;
    program_ = make_program(sharing(train::prediction_graph(graph, output, precision), shared), precision_);
  }

  /// Over weights of its own, which follow.
  Impl(const Device& device, const Graph& graph, Tensor output, const Precision& precision, const SharedBuffers& shared)
      : workspace_{std::make_shared<run::Runtime>(device, precision.reproducible), nullptr},
        precision_(of_forward_pass(precision)) {
    passes::check_names(graph.ir(), precision);
    const train::FoldedPrediction prediction =
        train::fold(sharing(train::prediction_graph(graph, output, precision), shared), precision);
    workspace_.store =
        std::make_shared<state::ParameterStore>(vk::context_of(device), store_form(prediction, precision));
    workspace_.store->write_state({});
    make_caches(prediction.rest);
    program_ = make_program(prediction.rest, precision_);
    Precision nearest = precision_;  // weights are rounded once, not in every run
    nearest.rounding.activations = Rounding::nearest;
    folding_ = make_program(prediction.weights, nearest);
    const graph::Ir& ir = prediction.weights.ir;
    const auto written = [&ir](graph::Origin origin) {
      const std::vector<graph::ValueId> values = ir.of(origin);
      return state::ParameterLayout(ir, values, std::vector<state::Training>(values.size()));
    };
    written_ = written(graph::Origin::parameter);
    written_states_ = written(graph::Origin::state);
    for (const state::KeptTensor& tensor : workspace_.store->tensors(Weights::current)) {
      const bool of_file = tensor.kind == state::KeptTensor::Kind::state || written_.find(tensor.name) != nullptr;
      if (of_file) tensors_.push_back(tensor);
    }
    for (const graph::Origin origin : {graph::Origin::parameter, graph::Origin::state}) {
      for (const graph::ValueId value : graph.ir().of(origin)) {
        const std::string& name = graph.ir().values[value].name;
        graph_names_.push_back(train::stored_name(name));
        if (graph_names_.back().starts_with(train::reserved_prefix)) train::refuse_name("predictor", name);
      }
    }
    *loaded_ = tensors_.empty();
  }

  LoadReport load_weights(const std::filesystem::path& path, const LoadOptions& options) {
    if (!folding_)
      fail("predictor", "expected weights of its own to load, got another's",
           "the trainer or first predictor loads them");
    const io::SafetensorsFile file(path);
    check_format(file.metadata(), path.string());
    train::CheckpointReader reader(file, options, precision_.overflow);
    reader.pass_over_states();
    std::vector<std::vector<float>> values;
    for (const state::KeptTensor& tensor : tensors_) {
      values.push_back(reader.take(train::stored_name(tensor.name), *tensor.entry));
      if (values.back().empty()) values.back() = first_values(tensor);
    }
    for (const std::string& name : graph_names_) reader.pass_over(name);
    LoadReport report = reader.report(path.string());
    *loaded_ = false;  // until all is written and folded
    workspace_.store->write(tensors_, values);
    run(*folding_);
    *loaded_ = true;
    return report;
  }

  std::vector<float> run(const std::map<std::string, Values>& inputs) {
    fill(inputs);
    program_->slots().submit();
    program_->slots().drain();
    return std::move(output_);
  }

  void submit(const std::map<std::string, Values>& inputs) {
    if (program_->lowered().shared.empty() || !program_->lowered().reported.empty()) {
      fail("predictor", "expected an output in shared memory to submit a run, got one for run() to return");
    }
    fill(inputs);
    program_->slots().submit();
  }

  void clear_caches() {
    program_->slots().drain();
    if (workspace_.caches) workspace_.caches->clear(workspace_.runtime->context());
  }

  void record(VkCommandBuffer commands) {
    if (!program_->lowered().slot.inputs.empty() || !program_->lowered().reported.empty()) {
      fail("predictor", "expected inputs and an output in shared memory to record a run, got some that are not",
           "see SharedBuffers");
    }
    require_weights();
    program_->record(commands, true);
  }

 private:
  void require_weights() const {
    if (!*loaded_) fail("predictor", "expected weights to run with, got none", "load_weights() takes them from a file");
  }

  /// The next slot, with these values.
  void fill(const std::map<std::string, Values>& inputs) {
    require_weights();
    const std::size_t count = program_->lowered().slot.inputs.size();
    if (inputs.size() != count) {
      fail("predictor", fmt::format("expected values for {} inputs, got {}", count, inputs.size()));
    }
    program_->fill(program_->slots().acquire(), "predictor", inputs);
  }

  static step::StepGraph sharing(step::StepGraph graph, const SharedBuffers& shared) {
    train::share_inputs("predictor", graph, shared.inputs, 1);
    if (shared.output) train::share_output("predictor", graph, *shared.output);
    return graph;
  }

  /// Of this graph, for programs of others too.
  void make_caches(const step::StepGraph& graph) {
    if (graph.caches.empty()) return;
    workspace_.caches = std::make_shared<const state::Caches>(workspace_.runtime->context(),
                                                              state::CacheLayout(graph.ir, graph.caches));
  }

  std::unique_ptr<run::Program> make_program(const step::StepGraph& graph, const Precision& precision) {
    state::StoreLayout layout = workspace_.store->spec().layout;
    if (workspace_.caches) layout.caches = workspace_.caches->layout();
    run::Runtime& runtime = *workspace_.runtime;
    tune::Tuner tuner(runtime.context(), runtime.pipelines);
    step::StepProgram lowered = tuner.settled(runtime.target, [&](const plan::Target& target) {
      return step::evaluation_program(target, graph, layout, precision, weights_);
    });
    return std::make_unique<run::Program>(
        workspace_, std::move(lowered),
        [this](const run::Program& program, const run::Slot& slot) {
          if (!program.lowered().reported.empty()) output_ = program.output(slot, 0);
        },
        run::Program::Options{.slots = graph.written ? 2U : 1U});
  }

  static void run(run::Program& program) {
    program.slots().acquire();
    program.slots().submit();
    program.slots().drain();
  }

  /// What training begins with, from seed 0.
  std::vector<float> first_values(const state::KeptTensor& tensor) const {
    const bool state = tensor.kind == state::KeptTensor::Kind::state;
    return state::initial_values(*(state ? written_states_ : written_).find(tensor.name), 0);
  }

  run::Workspace workspace_;
  Precision precision_;                                      ///< that its programs compute in
  Weights weights_ = Weights::current;                       ///< that its programs read
  std::shared_ptr<bool> loaded_ = std::make_shared<bool>();  ///< whether there are weights
  std::unique_ptr<run::Program> program_;
  std::unique_ptr<run::Program> folding_;   ///< computes what follows from weights alone, where these are its own
  state::ParameterLayout written_;          ///< of all parameters, as the graph was written
  state::ParameterLayout written_states_;   ///< likewise of all states
  std::vector<state::KeptTensor> tensors_;  ///< that files have
  std::vector<std::string> graph_names_;    ///< in files: those and what the output does not depend on
  std::vector<float> output_;
};

Predictor::Predictor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

Predictor::Impl& Predictor::impl() const {
  return held(impl_, "predictor", "a predictor that holds a model");
}

Predictor Predictor::compile(const Device& device, const Graph& graph, Tensor output, const Precision& precision,
                             const SharedBuffers& shared) {
  check_predicted(precision);
  return Predictor(std::make_unique<Impl>(device, graph, output, precision, shared));
}

Predictor Predictor::compile(const Trainer& trainer, const Graph& graph, Tensor output, const SharedBuffers& shared,
                             Weights weights) {
  return Predictor(std::make_unique<Impl>(trainer.workspace(), graph, output, shared, weights));
}

Predictor Predictor::compile(const Predictor& other, const Graph& graph, Tensor output, const SharedBuffers& shared) {
  return Predictor(std::make_unique<Impl>(other.impl(), graph, output, shared));
}

LoadReport Predictor::load_weights(const std::filesystem::path& path, const LoadOptions& options) {
  return impl().load_weights(path, options);
}

std::vector<float> Predictor::run(const std::map<std::string, Values>& inputs) {
  return impl().run(inputs);
}

void Predictor::submit(const std::map<std::string, Values>& inputs) {
  impl().submit(inputs);
}

void Predictor::clear_caches() {
  impl().clear_caches();
}

void Predictor::record(void* command_buffer) {
  if (command_buffer == nullptr) fail("predictor", "expected the application's command buffer, got null");
  impl().record(static_cast<VkCommandBuffer>(command_buffer));
}

}  // namespace halfstep
