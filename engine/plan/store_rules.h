#pragma once

#include <halfstep/precision.h>

#include <cstdint>
#include <map>
#include <optional>

#include "plan/dispatch.h"

namespace halfstep::plan {

/// How a program's dispatches store tensors of narrow types: rounding, overflow, and scales of single tensors.
class StoreRules {
 public:
  /// How the dispatches from here on store tensors of narrow types.
  void set(Rounding rounding, Overflow overflow) {
    storing_ = {.stochastic = rounding == Rounding::stochastic, .saturate = overflow == Overflow::saturate};
  }
  const Storing& storing() const { return storing_; }

  /// Sets where seed and step are stored, a StepState: required if anything is drawn at random.
  void key_noise(TensorId state) { noise_key_ = state; }
  std::optional<TensorId> noise_key() const { return noise_key_; }

  /// Sets the table of the scales that scale() refers to.
  void key_scales(TensorId table) { scales_ = table; }
  std::optional<TensorId> scales() const { return scales_; }
  /// Has a narrow tensor stored times a scale: the one at `place` of the table, from 1 on.
  void scale(TensorId tensor, std::uint32_t place) { scaled_[tensor] = place; }
  /// The place of a tensor's scale; 0 if it has none.
  std::uint32_t scale_of(TensorId tensor) const {
    const auto found = scaled_.find(tensor);
    return found == scaled_.end() ? 0 : found->second;
  }

 private:
  Storing storing_{};
  std::optional<TensorId> noise_key_;
  std::optional<TensorId> scales_;
  std::map<TensorId, std::uint32_t> scaled_;  ///< the places of their scales
};

}  // namespace halfstep::plan
