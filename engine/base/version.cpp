#include <halfstep/version.h>

#define HALFSTEP_TEXT(x) #x
#define HALFSTEP_DOTTED(major, minor, patch) HALFSTEP_TEXT(major) "." HALFSTEP_TEXT(minor) "." HALFSTEP_TEXT(patch)

namespace halfstep {

std::string_view version() {
  return HALFSTEP_DOTTED(HALFSTEP_VERSION_MAJOR, HALFSTEP_VERSION_MINOR, HALFSTEP_VERSION_PATCH);
}

}  // namespace halfstep
