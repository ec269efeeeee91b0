#include "ops/kernel.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <limits>

namespace halfstep::ops {

std::uint32_t index32(const plan::Lowering& out, std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::uint32_t>::max()) {
    fail(out.label(), fmt::format("expected sizes below 2^32, got {}", value), "use a smaller batch");
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace halfstep::ops
