#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <string>

namespace halfstep {

/// The factor the loss is multiplied by before the backward pass, so that small gradients survive in f16; the update
/// divides it out again in f32. Kept and changed on the device: the host never waits for it.
struct LossScale {
  enum class Kind : std::uint8_t { none, fixed, dynamic };
  Kind kind = Kind::none;
  float initial = 1;     ///< the scale of the first step
  float growth = 2;      ///< dynamic: the factor after `interval` good steps in a row
  float backoff = 0.5F;  ///< dynamic: the factor after a step whose gradients are not all finite
  std::uint32_t interval = 2000;
  float floor = 1;           ///< dynamic: never below
  float ceiling = 16777216;  ///< dynamic: never above (2^24)

  static LossScale none() { return {}; }
  static LossScale fixed(float scale) { return {.kind = Kind::fixed, .initial = scale}; }
  /// PyTorch's GradScaler by default: 65536, doubled after 2000 good steps, halved on overflow.
  static LossScale dynamic(float initial = 65536) { return {.kind = Kind::dynamic, .initial = initial}; }
};

/// How weights are kept between steps, where the model computes in f16.
enum class Weights : std::uint8_t {
  master,      ///< in f32, with an f16 copy for computing: 6 bytes a parameter
  stochastic,  ///< in f16 alone, each update rounded up or down at random without bias: 2 bytes a parameter
};

/// What is stored and computed in which type. Separate from the model: the same model trains in any of them.
struct Precision {
  std::string name = "float32";
  DType compute = DType::f32;  ///< of activations, their gradients and the weights that operators read
  Weights weights = Weights::master;
  LossScale loss_scale{};
  bool float16_partials = false;  ///< matmul and convolution accumulate in f16 instead of f32

  /// Everything in f32; no loss scale.
  static Precision float32() { return {}; }
  /// f16 activations and gradients, f32 master weights, f32 losses, dynamic loss scale.
  static Precision mixed() { return {.name = "mixed", .compute = DType::f16, .loss_scale = LossScale::dynamic()}; }
  /// f16 throughout, weights too, with stochastic rounding and no master copy; f32 losses, fixed loss scale.
  static Precision float16(float loss_scale = 256) {
    return {.name = "float16",
            .compute = DType::f16,
            .weights = Weights::stochastic,
            .loss_scale = LossScale::fixed(loss_scale)};
  }
};

}  // namespace halfstep
