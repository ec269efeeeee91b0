#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/dispatch.h"
#include "vk/shader/pipelines.h"

namespace halfstep::selftest {

using Words = std::vector<std::uint32_t>;

/// The SPIR-V of one of the self-test's own kernels: "arithmetic.add". Throws Error if there is none.
Words kernel_words(std::string_view name);

/// The words of a file. Throws Error if it cannot be read or holds no SPIR-V.
Words read_spirv(const std::filesystem::path& file);
void write_spirv(const std::filesystem::path& file, const Words& words);

/// A device that kernels run on, with its pipelines.
struct Bench {
  vk::Context& context;
  vk::Pipelines& pipelines;
};
/// That of the device under test.
Bench bench();

/// One dispatch of an own kernel, or of one that replace_kernel() of planted.h gave. Constant 0 is the size of a
/// workgroup.
struct Launch {
  std::string kernel;
  Words constants{64};
  std::vector<std::byte> push{};
  std::vector<std::uint32_t> buffers{};  ///< binding i is this one of those of a run
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  bool addresses = false;    ///< the buffers' addresses are pushed before `push`
  std::string interface {};  ///< the own kernel whose bindings it has, where `kernel` is none
};

/// What a run left behind.
struct Outcome {
  std::vector<Words> buffers;
  bool guards_intact = true;         ///< nothing was written next to a buffer
  std::vector<double> microseconds;  ///< of each launch; empty if the queue has no timestamps
};

/// Runs dispatches one after the other, with a barrier between. Each buffer begins with the words given, between guard
/// words. All of it is done `submits` times on the same buffers, by two recordings in turns, while the host waits only
/// for what it submits again. Throws Error if the driver refuses.
Outcome run(const std::vector<Launch>& launches, const std::vector<Words>& buffers, const Bench& on = bench(),
            std::size_t submits = 1);

/// Workgroups of 64 for `count` invocations.
std::array<std::uint32_t, 3> groups_of(std::size_t count);

/// The kernels that were launched last, to say which was wrong.
const std::string& last_kernel();

}  // namespace halfstep::selftest
