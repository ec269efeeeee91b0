#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "samples/watch/records.h"

namespace samples {

/// One HTML file, which needs nothing else, of a run's records: figures, curves, pictures of predictions, operators by
/// time and by memory, exponents over time, skipped steps. It is well-formed XML, without scripts, and follows the
/// reader's light or dark theme. `folder` is the log's: pictures that are not where their records say are looked for
/// there. Records may hold anything.
std::string dashboard_page(const std::vector<Record>& records, const std::filesystem::path& folder);

}  // namespace samples
