#pragma once

#include <string_view>

namespace halfstep::testing {

/// The text of a file tests/reference/parity_*.json. Throws std::out_of_range if there is none of this name.
std::string_view parity_text(std::string_view file);

}  // namespace halfstep::testing
