#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "state/step_state.h"

/// Trainings small enough to run a thousand steps in a test.
namespace halfstep::testing {

/// A set of `count` random samples of `shape`, labelled by a fixed rule.
Dataset toy_dataset(std::int64_t count, Shape shape, std::uint32_t classes, std::uint64_t seed = 1);

/// 203 of its samples {6, 5, 1}, of 3 classes.
const Dataset& toy_set();

/// Makes steps and waits for them.
void run(Trainer& trainer, int steps);

/// A trainer with a convolution, pooling and a dense layer on toy_dataset's samples {6, 5, 1}.
struct ToyOptions {
  std::int64_t batch = 8;
  Optimizer optimizer = Adam{.rate = 0.01F};
  Precision precision = Precision::mixed();
  std::uint64_t seed = 3;
  std::uint64_t resident_limit = 0;
  Augmentation augmentation{};
  float dropout = 0;                              ///< before the dense layer
  std::optional<Device> device{};                 ///< the harness's if not set
  std::function<void(TrainerOptions&)> change{};  ///< applied to the options last
};
Trainer toy_trainer(const Dataset& set, const ToyOptions& options);

/// Has a training go on from its checkpoint with another state.
void change_state(Trainer& trainer, const std::function<void(state::StepState&)>& change);

/// Mixed, with a loss scale so large that the first steps overflow.
Precision overflowing();

/// Without a loss scale, and weights rounded to nearest.
inline Precision plain(Precision precision) {
  precision.loss_scale = LossScale::none();
  precision.rounding.weights = Rounding::nearest;
  return precision;
}

/// y = w with the loss sum(w * pull): every step's gradient is `pull`, whatever the weights.
class Pull {
 public:
  using Change = std::function<void(TrainerOptions&)>;
  Pull(std::int64_t count, float start, Optimizer optimizer, Precision precision, std::uint64_t seed = 5,
       const Change& change = {});
  /// One step with this gradient for every weight; waits for it.
  void step(float pull) { step(std::vector{pull}); }
  /// One step whose micro-batches have these gradients; waits for it.
  void step(const std::vector<float>& pulls);
  /// Runs `steps` such steps.
  void run(float pull, int steps);
  Trainer& trainer() { return trainer_; }
  std::vector<float> weights() { return trainer_.parameter("w"); }

 private:
  static Trainer make(std::int64_t count, float start, Optimizer optimizer, Precision precision, std::uint64_t seed,
                      const Change& change);
  std::int64_t count_;
  Trainer trainer_;
};

/// The values of all parameters, concatenated.
std::vector<float> all_weights(Trainer& trainer, std::span<const std::string> names);
/// The weights of toy_trainer.
std::vector<float> toy_weights(Trainer& trainer);

}  // namespace halfstep::testing
