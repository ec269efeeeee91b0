#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>

namespace samples {

/// Writes steps in Chrome's trace format, which ui.perfetto.dev and chrome://tracing read: threads for the device (one
/// slice for each dispatch, named like its operator), the host and the loader, and for each step how long it was
/// queued.
void write_trace(const std::filesystem::path& path, const halfstep::Timeline& timeline);

}  // namespace samples
