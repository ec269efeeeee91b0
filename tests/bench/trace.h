#pragma once

#include <halfstep/inspector.h>

#include <filesystem>
#include <span>

namespace bench {

/// Writes consecutive profiled steps in Chrome's trace format: one event per dispatch, named like its operator. Read by
/// ui.perfetto.dev and chrome://tracing.
void write_trace(const std::filesystem::path& path, std::span<const halfstep::DispatchCost> costs);

}  // namespace bench
