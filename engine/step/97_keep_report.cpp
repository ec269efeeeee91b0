#include <cstddef>

#include "step/report.h"
#include "step/stages.h"

namespace halfstep::step {

static_assert(offsetof(ReportHeader, runs) == 40);  // as shaders/step/keep_report.comp reads it

void keep_report(plan::ProgramBuilder& builder, std::uint64_t bytes) {
  const std::uint64_t quads = bytes / 16;
  const std::uint32_t local_size = flat_local_size(builder.target());
  builder.dispatch(
      {.label = "keep report",
       .shader = "keep_report",
       .constants = {local_size},
       .push = plan::push_bytes(std::array{static_cast<std::uint32_t>(quads), kept_reports}),
       .operands = {{builder.place_bytes("report", bytes, {state::buffers::report, 0}), plan::Access::read},
                    {builder.place_bytes("kept reports", kept_reports * bytes, {state::buffers::report, bytes}),
                     plan::Access::write}},
       .groups = plan::groups_for(builder.target(), static_cast<std::int64_t>(quads), local_size)});
}

}  // namespace halfstep::step
