#pragma once

#include <halfstep/halfstep.h>

#include <string>
#include <vector>

namespace samples {

/// How a dispatch is shown.
struct StepBox {
  std::vector<std::string> operators;  ///< that were fused, in order
  std::string result;                  ///< "f16 {32, 28, 28, 6}, 602 KB"
  std::string colour;                  ///< of the result's type
};
StepBox box_of(const halfstep::PlannedStep& step, const halfstep::PlannedDispatch& dispatch);

/// The dispatches whose results dispatch `index` reads, each once. Those of the step's counters are left out, which
/// most dispatches of an update read.
std::vector<std::size_t> sources_of(const halfstep::PlannedStep& step, std::size_t index);

/// The picture of write_step_graph(), as an SVG file.
std::string step_picture(const halfstep::PlannedStep& step);

}  // namespace samples
