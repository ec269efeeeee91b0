#pragma once

#include <string>
#include <vector>

#include "samples/watch/records.h"

namespace samples {

/// One dispatch of the step, as a record of operators has it.
struct OperatorCost {
  std::string label{};
  std::string phase{};
  std::string shader{};
  double milliseconds = 0;  ///< 0 where it was not timed
  double flops = 0;
  double bytes_moved = 0;
  double result_bytes = 0;  ///< of the tensors that it makes
  std::string result{};     ///< the first of them: "f16 {32, 28, 28, 6}"
};

/// The dispatches of the last record of operators that has times, or of the last; none where there is no such record.
std::vector<OperatorCost> operators_of(const std::vector<Record>& records);

/// The same by kind: "conv2d" has what all dispatches that begin with that operator have together. The phase says how
/// many there are.
std::vector<OperatorCost> kinds_of(const std::vector<OperatorCost>& operators);

}  // namespace samples
