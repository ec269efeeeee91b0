#pragma once

#include <halfstep/halfstep.h>

#include <map>
#include <string>
#include <vector>

namespace halfstep::testing {

struct PulledTensor {
  std::string name;
  Shape shape;
  float start = 0;  ///< of all of its elements
};

/// Parameters w of any shapes with the loss sum(w * pull) over all of them: a step's gradients are its pulls, whatever
/// the weights.
class PulledTensors {
 public:
  /// The options' loss is set here.
  PulledTensors(const std::vector<PulledTensor>& tensors, TrainerOptions options);

  /// One step with these gradients, by the parameters' names; waits for it.
  void step(const std::map<std::string, std::vector<float>>& pulls);
  Trainer& trainer() { return trainer_; }

 private:
  Trainer trainer_;
};

}  // namespace halfstep::testing
