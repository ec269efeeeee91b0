#pragma once

#include <halfstep/ops.h>

namespace halfstep::ops {

/// What a batch norm makes of one batch.
struct BatchNormResult {
  Tensor y;
  Tensor statistics;     ///< f32 {1, 2, c}: mean, inverse deviation
  Tensor next_mean;      ///< f32 {c}: what the running mean becomes
  Tensor next_variance;  ///< f32 {c}
};

/// Batch norm with the statistics of the batch; the running ones stay as they are.
BatchNormResult batch_norm_training(Tensor x, Tensor weight, Tensor bias, RunningStatistics running,
                                    BatchNormOptions options);

/// Batch norm with the running statistics. Where x is the result of an operator that can take a factor and an offset
/// into its weights, it is that operator with others.
Tensor batch_norm_inference(Tensor x, Tensor weight, Tensor bias, RunningStatistics running, float epsilon);

}  // namespace halfstep::ops
