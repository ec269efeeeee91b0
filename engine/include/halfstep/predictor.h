#pragma once

#include <halfstep/checkpoint.h>
#include <halfstep/device.h>
#include <halfstep/graph.h>
#include <halfstep/precision.h>
#include <halfstep/trainer.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace halfstep {

/// Runs a graph forwards with weights from a file, or with those of a trainer, and trains nothing. Batch norms are folded
/// into the weights of the convolutions before them, those from a file when they are loaded; nothing is dropped at
/// random. To be used by one thread at a time, and not while another uses the trainer.
class HALFSTEP_API Predictor {
 public:
  /// `output`, a value of `graph`, is what run() computes. Throws Error for a precision that the graph cannot have.
  static Predictor compile(const Device& device, const Graph& graph, Tensor output,
                           const Precision& precision = Precision::float32());
  /// The same over the weights and states that `trainer` has whenever run() is called, in its precision, without a copy of
  /// them: for another batch size or another part of the model. Parameters are found by their names; `graph` need not
  /// have all. They outlive the trainer. Throws Error where the trainer has none of a name, or one of another shape or
  /// type.
  static Predictor compile(const Trainer& trainer, const Graph& graph, Tensor output);
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  /// Takes weights and states from a safetensors file; see Trainer::load_weights. A tensor that a file may lack has the
  /// value that training starts with, from seed 0. Throws Error for a predictor over a trainer, which loads its own.
  LoadReport load_weights(const std::filesystem::path& path, const LoadOptions& options = {});
  /// The output, in the order of its shape, for values of every input that it depends on. Waits for it. Throws Error
  /// where an input is missing, unknown or of another size, and before weights were loaded.
  std::vector<float> run(const std::map<std::string, Values>& inputs);

 private:
  class Impl;
  explicit Predictor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace halfstep
