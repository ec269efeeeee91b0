#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plan/lowering.h"

namespace halfstep::ops {

/// Shape of the statistics of `rows` rows after lower_rows: for each row its value, its label and a number for its
/// gradient; and one more row with the weight of a row in the mean, and how many rows count.
Shape statistics_shape(std::int64_t rows);
/// How many rows count {1, 1}, of those statistics.
Tensor rows_that_count(Tensor statistics);

/// Appends a kernel of shaders/loss/row_loss.glsl: one value for each row of logits {n, classes} with labels {n}, their
/// mean {} over the rows that count, which neither ignored_label nor `also_ignored` has marked, and the statistics.
/// `constants` are specialization constants 3, 4, ...
void lower_rows(plan::Lowering& out, const std::string& shader, plan::TensorId statistics, std::uint32_t also_ignored,
                const std::vector<std::uint32_t>& constants = {});

}  // namespace halfstep::ops
