// Buffers beyond 2 and 4 GiB: by their addresses, and by copies that are read back.
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/device.h"
#include "plan/dispatch.h"
#include "selftest/bed.h"
#include "selftest/far_words.h"
#include "selftest/numbers.h"
#include "vk/command/recorder.h"
#include "vk/command/timeline.h"
#include "vk/command/transfer.h"

namespace halfstep::selftest {
namespace {

/// The push constants of far.comp.
struct Far {
  std::uint64_t start, apart;
  std::uint32_t count, written;
};

std::uint32_t word_of(std::uint64_t number, std::uint32_t written) {
  return static_cast<std::uint32_t>(number) * 2654435761U + written;
}

void expect_none(CaseReport& report, const std::string& what, std::size_t wrong, const std::string& kernel) {
  if (wrong == 0) return;
  add_fault(report, fmt::format("{} are wrong: {}", what, wrong));
  if (report.kernel.empty()) report.kernel = kernel;
}

/// What a word of a large buffer is filled with before a copy.
std::uint32_t filling(std::uint64_t word) {
  return static_cast<std::uint32_t>(word ^ word >> 20U) * 2246822519U;
}

constexpr std::size_t part_words = std::size_t{16} << 18U;  // 16 MiB

/// Calls `use` with the first word and the words of each part of a range.
template <typename Use>
void for_parts(std::uint64_t words, const Use& use) {
  for (std::uint64_t first = 0; first < words; first += part_words)
    use(first, static_cast<std::size_t>(std::min<std::uint64_t>(part_words, words - first)));
}

/// Fills the first half of a buffer through uploads, copies it to the second half in one command, and reads all of it.
void check_copy(CaseReport& report, const vk::Buffer& buffer) {
  vk::Context& context = testing::context();
  const std::uint64_t half = buffer.bytes() / 2 / 4;
  Words words;
  for_parts(half, [&](std::uint64_t first, std::size_t count) {
    words.resize(count);
    for (std::size_t i = 0; i < count; ++i) words[i] = filling(first + i);
    vk::upload(context, buffer, first * 4, std::as_bytes(std::span(words)));
  });
  vk::Recorder recorder(context);
  recorder.begin();
  recorder.barrier();
  recorder.copy(buffer.handle(), 0, buffer.handle(), half * 4, half * 4);
  recorder.end();
  vk::Timeline timeline(context);
  timeline.wait(timeline.submit(recorder));
  std::size_t wrong = 0;
  for_parts(2 * half, [&](std::uint64_t first, std::size_t count) {
    words.resize(count);
    vk::download(context, buffer, first * 4, std::as_writable_bytes(std::span(words)));
    for (std::size_t i = 0; i < count; ++i) wrong += words[i] != filling((first + i) % half) ? 1U : 0U;
  });
  expect_none(report, fmt::format("of {} words, half of them copied from the other half,", 2 * half), wrong, "");
}

void check_words(CaseReport& report, const vk::Buffer& buffer) {
  check_copy(report, buffer);
  if (!testing::context().capabilities().buffer_address) {
    report.facts.push_back("copies only: buffers have no addresses, or Halfstep does not use them on this driver");
    return;
  }
  check_far_words(report, buffer, (std::uint64_t{1} << 22U) + 4);  // ends in the last MiB
}

void check_large(CaseReport& report, std::uint64_t bytes) {
  vk::Context& context = testing::context();
  const vk::Capabilities& device = context.capabilities();
  if (device.max_buffer_bytes < bytes)
    return set_missing(report, fmt::format("a buffer has at most {} bytes", device.max_buffer_bytes));
  if (context.heap_bytes().free < bytes + (bytes >> 2U))
    return set_missing(report, fmt::format("no memory for a buffer of {} bytes", bytes));
  check_words(report, vk::Buffer(context, bytes, vk::Memory::device, "selftest"));
}

/// The largest buffer that the device makes, in steps of a sixteenth: Vulkan lets it refuse what it offers.
void check_largest(CaseReport& report) {
  vk::Context& context = testing::context();
  const std::uint64_t offered = context.capabilities().max_buffer_bytes;
  std::uint64_t bytes = std::min({offered, context.heap_bytes().free / 4 * 3, std::uint64_t{6} << 30U}) / 8 * 8;
  std::optional<vk::Buffer> buffer;
  while (!buffer) {
    try {
      buffer.emplace(context, bytes, vk::Memory::device, "selftest");
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory || bytes < (1U << 20U)) throw;
      report.facts.push_back(
          fmt::format("the device refuses a buffer of {} bytes, of {} that it offers", bytes, offered));
      bytes -= bytes / 128 * 8;
    }
  }
  report.facts.push_back(fmt::format("{} bytes", bytes));
  check_words(report, *buffer);
}

}  // namespace

void check_far_words(CaseReport& report, const vk::Buffer& buffer, std::uint64_t apart) {
  const auto count = static_cast<std::uint32_t>((buffer.bytes() - 4) / apart + 1);
  std::uint32_t written = 1;
  for (const std::string kernel : {"far.address", "far.index"}) {
    ++written;
    const auto launch = [&](std::uint32_t stored) {
      return Launch{kernel, {64}, plan::push_bytes(Far{buffer.address(), apart, count, stored}), {0}, groups_of(count)};
    };
    const Words seen = run({launch(written), launch(0)}, {Words(count, 0)}).buffers[0];
    std::size_t wrong_loads = 0;
    std::size_t wrong_stores = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      Words stored(1);
      vk::download(testing::context(), buffer, i * apart, std::as_writable_bytes(std::span(stored)));
      wrong_loads += seen[i] != stored[0] ? 1U : 0U;
      wrong_stores += stored[0] != word_of(i, written) ? 1U : 0U;
    }
    const std::string where = fmt::format("of {} words, each {} bytes from the next,", count, apart);
    expect_none(report, where + " as they were stored", wrong_stores, kernel);
    expect_none(report, where + " as they were loaded", wrong_loads, kernel);
  }
}

std::vector<Case> large_cases() {
  std::vector<Case> cases;
  for (const unsigned power : {31U, 32U}) {
    const std::uint64_t limit = std::uint64_t{1} << power;
    cases.push_back(
        {fmt::format("limit/{}GiB", limit >> 30U),
         fmt::format("A buffer beyond {} GiB: a copy of half of it, and words by its address", limit >> 30U),
         Wanted::full, [limit](CaseReport& report) { check_large(report, limit + (1U << 20U)); }});
  }
  cases.push_back({"limit/largest", "The largest buffer that the device has memory for, up to 6 GiB: the same",
                   Wanted::full, check_largest});
  return cases;
}

}  // namespace halfstep::selftest
