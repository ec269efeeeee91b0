#pragma once

#include <halfstep/halfstep.h>

namespace samples {

/// A picture that is drawn, {side, side, 3}: mountains at sunset before a lake, with details of every size. The same on
/// every machine up to the last bit of its pixels.
halfstep::Image draw_landscape(std::int64_t side);

}  // namespace samples
