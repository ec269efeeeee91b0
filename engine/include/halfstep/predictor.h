#pragma once

#include <halfstep/checkpoint.h>
#include <halfstep/device.h>
#include <halfstep/graph.h>
#include <halfstep/guest.h>
#include <halfstep/precision.h>
#include <halfstep/trainer.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace halfstep {

/// Runs the forward pass of a graph, for inference only, with weights from a file or with those of a trainer. Batch
/// norms are folded into the weights of the convolutions before them, unless these work in 16 bits; weights from a file
/// are folded once, when they are loaded. Dropout is disabled. Caches (Scope::cache) begin as zeros, and every run
/// updates them. To be used by one thread at a time, and not while another thread uses the trainer or predictor whose
/// weights it has. Kernels are checked and measured on the device as a trainer's are (DeviceSettings::tuning): on a
/// GPU, the first compile() of a graph may take a second more. All members of a predictor that was moved from throw
/// Error.
class HALFSTEP_API Predictor {
 public:
  /// run() computes `output`, floating numbers of `graph`. Inputs and output may be in an application's memory
  /// (`shared`). All of `precision` that concerns the forward pass applies: types, `partials`, `overflow`,
  /// `reproducible` and `rounding.activations`, whose random numbers are those of seed 0 and the same in every run.
  /// What concerns training alone is not used: `moments`, loss and gradient scales, the other roundings. Throws Error
  /// for a precision that Trainer::compile would refuse, one with stop_on, one that does not fit the graph, and for
  /// memory that does not fit its tensor.
  static Predictor compile(const Device& device, const Graph& graph, Tensor output,
                           const Precision& precision = Precision::float32(), const SharedBuffers& shared = {});
  /// The same with the weights and states that `trainer` has at the time of each run(), in its precision, without
  /// copying them: for another batch size or another part of the model. Parameters are found by name; `graph` need not
  /// have all of them, nor the layers and operators that the precision names. Weights::averaged: with the averages of
  /// the weights, as evaluate() takes them. The predictor may outlive the trainer. Throws Error if the trainer has no
  /// parameter of a name, or one of another shape or type, and if averages are requested and it has none.
  static Predictor compile(const Trainer& trainer, const Graph& graph, Tensor output, const SharedBuffers& shared = {},
                           Weights weights = Weights::current);
  /// The same with the weights (or averages), precision and caches of another predictor, which it may outlive: the next
  /// run of either finds the caches as the last one of either left them. Caches are found by name too. Throws Error
  /// likewise.
  static Predictor compile(const Predictor& other, const Graph& graph, Tensor output, const SharedBuffers& shared = {});
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  /// Reads weights and states from a safetensors file; see Trainer::load_weights. A tensor that the file may lack gets
  /// the initial value that training with seed 0 would give it. What the output does not depend on is not read. Throws
  /// Error for a predictor over a trainer or over another predictor, which load their own weights.
  LoadReport load_weights(const std::filesystem::path& path, const LoadOptions& options = {});
  /// Computes the output, in row-major order, from values for every input that it depends on and that is not shared.
  /// Waits for the result. Returns nothing where the output is in an application's memory. Throws Error if an input is
  /// missing, unknown or of another size, or if the output depends on parameters or states and no weights have been
  /// loaded.
  std::vector<float> run(const std::map<std::string, Values>& inputs);
  /// Submits the same without waiting for it, for a predictor whose output is in an application's memory: what is
  /// submitted to the queue after it finds the output there. Blocks only while the run before the previous one is still
  /// under way. Otherwise as run().
  void submit(const std::map<std::string, Values>& inputs = {});
  /// Makes the caches zeros again, for all predictors that share them. Waits for what was submitted before.
  void clear_caches();
  /// Records a run into an application's command buffer (see Trainer::record). All inputs and the output must be in the
  /// application's memory. Each execution uses the weights and the memory as they are then. While a step of
  /// Trainer::run_for is open, some parameters may be updated already and others not. The first call takes device
  /// memory of its own for what the graph computes in between. Throws Error unless inputs and output are shared, or if
  /// no weights have been loaded; the command buffer is then as it was.
  void record(void* command_buffer);

 private:
  class Impl;
  explicit Predictor(std::unique_ptr<Impl> impl);
  Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace halfstep
