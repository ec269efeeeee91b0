#pragma once

#include <halfstep/language.h>

#include <string_view>

// The version of these headers. Until 1.0 a minor version may change the interface.
#define HALFSTEP_VERSION_MAJOR 0
#define HALFSTEP_VERSION_MINOR 1
#define HALFSTEP_VERSION_PATCH 0

/// A number to compare: HALFSTEP_VERSION >= HALFSTEP_MAKE_VERSION(0, 2, 0).
#define HALFSTEP_MAKE_VERSION(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define HALFSTEP_VERSION HALFSTEP_MAKE_VERSION(HALFSTEP_VERSION_MAJOR, HALFSTEP_VERSION_MINOR, HALFSTEP_VERSION_PATCH)

namespace halfstep {

/// The version of the library that runs, "0.1.0". It differs from the headers' if an older or newer library is loaded.
HALFSTEP_API std::string_view version();

}  // namespace halfstep
