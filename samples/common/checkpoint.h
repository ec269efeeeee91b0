#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace samples {

/// One line on standard error for each tensor with values that are infinite or NaN.
void warn_of_values_not_finite(const std::filesystem::path& path, const halfstep::CheckpointSummary& summary);

/// A file's text on one line, whatever is in it: control characters, and bytes that are no UTF-8, are shown as \x and
/// two digits each.
std::string printable(std::string_view text);

}  // namespace samples
