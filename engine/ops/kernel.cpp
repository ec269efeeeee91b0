#include "ops/kernel.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace halfstep::ops {

std::uint32_t flat_local_size(const plan::Target& target) {
  return std::min(target.cpu ? 64U : 256U, target.max_invocations);
}

std::uint32_t index32(const plan::Lowering& out, std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::uint32_t>::max()) {
    fail(out.label(), fmt::format("expected sizes below 2^32, got {}", value), "use a smaller batch");
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace halfstep::ops
