#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/lowering.h"

namespace halfstep::ops {

/// Shape of what is known of each of `rows` rows after lower_rows: its number, its label, something for its gradient;
/// and, in a row of its own, the weight of a row in the mean.
Shape statistics_shape(std::int64_t rows);

/// Appends a kernel of shaders/loss/row_loss.glsl: a number for each row of logits {n, classes} with labels {n}, their
/// mean {} over the rows that count, and the statistics.
/// `constants` are specialization constants 2, 3, ...
void lower_rows(plan::Lowering& out, const std::string& shader, plan::TensorId statistics,
                const std::vector<std::uint32_t>& constants = {});

}  // namespace halfstep::ops
