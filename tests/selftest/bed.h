#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/dispatch.h"

namespace halfstep::selftest {

using Words = std::vector<std::uint32_t>;

/// The SPIR-V of one of the self-test's own kernels: "arithmetic.add". Throws Error if there is none.
Words kernel_words(std::string_view name);

/// One dispatch of an own kernel. Constant 0 is the size of a workgroup.
struct Launch {
  std::string kernel;
  Words constants{64};
  std::vector<std::byte> push{};
  std::vector<std::uint32_t> buffers{};  ///< binding i is this one of those of a run
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  bool addresses = false;  ///< the buffers' addresses are pushed before `push`
};

/// What a run left behind.
struct Outcome {
  std::vector<Words> buffers;
  bool guards_intact = true;         ///< nothing was written next to a buffer
  std::vector<double> microseconds;  ///< of each launch; empty if the queue has no timestamps
};

/// Runs dispatches one after the other, with a barrier between. Each buffer begins with the words given, between guard
/// words. Throws Error if the driver refuses.
Outcome run(const std::vector<Launch>& launches, const std::vector<Words>& buffers);

/// Workgroups of 64 for `count` invocations.
std::array<std::uint32_t, 3> groups_of(std::size_t count);

/// The kernels that were launched last, to say which was wrong.
const std::string& last_kernel();

}  // namespace halfstep::selftest
