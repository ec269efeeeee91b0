#pragma once

#include <halfstep/ops.h>

namespace halfstep::ops {

/// The results of batch norm on one batch.
struct BatchNormResult {
  Tensor y;
  Tensor statistics;     ///< f32 {1, 2, c}: mean, inverse std
  Tensor next_mean;      ///< f32 {c}: the next running mean
  Tensor next_variance;  ///< f32 {c}
};

/// Batch norm with the statistics of the batch; the running ones do not change.
BatchNormResult batch_norm_training(Tensor x, Tensor weight, Tensor bias, RunningStatistics running,
                                    BatchNormOptions options);

/// Batch norm with the running statistics. If the operator that produced x can absorb a factor and an offset into its
/// weights, returns that operator with other weights.
Tensor batch_norm_inference(Tensor x, Tensor weight, Tensor bias, RunningStatistics running, float epsilon);

}  // namespace halfstep::ops
