#include "plan/target.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <string_view>

namespace halfstep::plan {
namespace {

/// Loop rounds that the driver with the lowest limit that is known runs.
constexpr std::uint32_t least_rounds = 65535;

void expect_at_least(std::string_view what, std::uint64_t wanted, std::uint64_t got) {
  if (got >= wanted) return;
  fail(ErrorCode::unsupported, "precision",
       fmt::format("expected a device with at least {} {} for Precision::reproducible, got {}", wanted, what, got));
}

}  // namespace

Target reproducible(const Target& device) {
  Target target;
  target.float16 = {.storage = Storage16::packed, .words = true, .arithmetic = false};
  target.max_rounds = least_rounds;
  target.max_storage_buffers = 8;
  target.reproducible = true;
  target.winograd = false;
  expect_at_least("invocations in a workgroup", target.max_invocations, device.max_invocations);
  expect_at_least("bytes of shared memory", target.shared_memory_bytes, device.shared_memory_bytes);
  expect_at_least("bytes of push constants", target.max_push_bytes, device.max_push_bytes);
  expect_at_least("loop rounds", target.max_rounds, device.max_rounds);
  expect_at_least("bytes of a storage buffer's range", target.max_storage_range, device.max_storage_range);
  if (device.part_bytes != 0) expect_at_least("bytes of a buffer", target.max_storage_range, device.part_bytes);
  expect_at_least("storage buffers", target.max_storage_buffers, device.max_storage_buffers);
  // These decide where things lie and when they are sent, not what is computed.
  target.max_groups = device.max_groups;
  target.offset_alignment = device.offset_alignment;
  target.part_bytes = device.part_bytes;
  target.submit_seconds = device.submit_seconds;
  return target;
}

}  // namespace halfstep::plan
