#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/lowering.h"

namespace halfstep::ops {

/// Shape of the statistics of `rows` rows after lower_rows: for each row its value, its label and a number for its
/// gradient; and one more row with the weight of a row in the mean.
Shape statistics_shape(std::int64_t rows);

/// Appends a kernel of shaders/loss/row_loss.glsl: one value for each row of logits {n, classes} with labels {n}, their
/// mean {} over the rows that count, and the statistics.
/// `constants` are specialization constants 2, 3, ...
void lower_rows(plan::Lowering& out, const std::string& shader, plan::TensorId statistics,
                const std::vector<std::uint32_t>& constants = {});

}  // namespace halfstep::ops
