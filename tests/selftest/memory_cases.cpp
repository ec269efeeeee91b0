// Atomics, barriers, the memory model, and buffers by their addresses.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "harness/device.h"
#include "plan/dispatch.h"
#include "selftest/bed.h"
#include "selftest/far_words.h"
#include "selftest/numbers.h"
#include "vk/command/transfer.h"

namespace halfstep::selftest {
namespace {

void check_atomics(CaseReport& report) {
  constexpr std::uint32_t count = 64 * 128;
  const std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  const Outcome outcome =
      run({{"atomics", {64}, {}, {0, 1}, {128, 1, 1}}}, {{0, most, 0, 0, 0, 0, 0, 0}, Words(count + 1, 0)});
  const Words& words = outcome.buffers[0];
  std::uint32_t parity = 0;
  for (std::uint32_t i = 0; i < count; ++i) parity ^= i * 2654435761U;
  expect(report, "the sum by atomicAdd", words[0], count * (count - 1) / 2);
  expect(report, "the least by atomicMin", words[1], 0);
  expect(report, "the largest by atomicMax", words[2], count - 1);
  expect(report, "all bits by atomicOr", words[3], most);
  expect(report, "the parity by atomicXor", words[4], parity);
  expect(report, "the sum by atomicCompSwap", words[5], 3 * words[7]);
  expect(report, "the tickets that were drawn", words[6], count);
  const auto once = std::ranges::count(outcome.buffers[1].begin(), outcome.buffers[1].end() - 1, 1U);
  expect(report, "how many tickets were drawn once", static_cast<std::uint64_t>(once), count);
  expect(report, "the sum of workgroups' sums in shared memory", outcome.buffers[1].back(), count * (count - 1) / 2);
}

/// The rounds of exchange.comp on the host.
Words exchanged(Words words, std::uint32_t size, std::uint32_t rounds) {
  for (std::size_t group = 0; group < words.size(); group += size) {
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const Words before(words.begin() + static_cast<std::ptrdiff_t>(group),
                         words.begin() + static_cast<std::ptrdiff_t>(group + size));
      for (std::uint32_t me = 0; me < size; ++me) words[group + me] = before[(me * 5 + i + 1) % size] * 3 + i;
    }
  }
  return words;
}

void check_exchange(CaseReport& report, const std::string& place) {
  Words words(64 * 32);
  std::uint32_t state = 21;
  for (std::uint32_t& word : words) word = next_random(state);
  for (const std::uint32_t rounds : {1U, 2U, 7U, 40U}) {
    const Outcome outcome = run({{"exchange." + place, {64}, plan::push_bytes(rounds), {0}, {32, 1, 1}}}, {words});
    const Words want = exchanged(words, 64, rounds);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < want.size(); ++i) wrong += outcome.buffers[0][i] != want[i] ? 1U : 0U;
    expect(report, fmt::format("how many of {} numbers are wrong after {} exchanges", want.size(), rounds), wrong, 0);
  }
}

void check_messages(CaseReport& report) {
  Words sum(4, 0);
  constexpr std::uint32_t rounds = 200;
  for (const std::uint32_t groups : {2U, 16U, 64U}) {
    const Outcome outcome = run({{"messages", {64}, plan::push_bytes(rounds), {0, 1, 2}, {groups, 1, 1}}},
                                {Words(groups * 32, 0), Words(groups * 32, 0), Words(4, 0)});
    for (std::size_t i = 0; i < 4; ++i) sum[i] += outcome.buffers[2][i];
    expect(report, "the least flag in the end", *std::ranges::min_element(outcome.buffers[1]), rounds);
    expect(report, "the least data in the end", *std::ranges::min_element(outcome.buffers[0]), rounds);
  }
  expect(report, "how often a flag was seen without the data that was written before it", sum[0], 0);
  expect(report, "how often a second read was older than the first", sum[1], 0);
  report.facts.push_back(sum[2] > 0
                             ? "messages were seen while others wrote them"
                             : "no message was seen before its writer ended: nothing was tested across workgroups");
}

struct Shift {
  std::uint32_t count;
  std::uint32_t shift;
};

/// Fifty dispatches in each submit, each of which reads what the one before wrote elsewhere; workgroups differ in who
/// reads whom. The first of a submit reads what the last of the submit before wrote.
void check_chain(CaseReport& report, std::uint32_t submits) {
  constexpr std::uint32_t count = 64 * 100 + 17;
  Words words(count);
  std::iota(words.begin(), words.end(), 5U);
  Words want = words;
  std::vector<Launch> launches;
  for (std::uint32_t i = 0; i < 50; ++i) {
    const Shift shift{count, i * 977 + 1};
    launches.push_back({"chain", {64}, plan::push_bytes(shift), {i % 2, 1 - i % 2}, groups_of(count)});
  }
  for (std::uint32_t i = 0; i < 50 * submits; ++i) {
    const std::uint32_t shift = i % 50 * 977 + 1;
    Words next(count);
    for (std::uint32_t at = 0; at < count; ++at) next[at] = want[(at + shift) % count] * 3 + shift;
    want = std::move(next);
  }
  const Words got = run(launches, {words, Words(count, 0)}, bench(), submits).buffers[0];
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += got[i] != want[i] ? 1U : 0U;
  expect(report, fmt::format("how many of {} numbers are wrong after a chain of dispatches", count), wrong, 0);
}

void check_addresses(CaseReport& report) {
  if (!testing::context().capabilities().buffer_address)
    return set_missing(report, "buffers have no addresses, or Halfstep does not use them on this driver");
  constexpr std::uint32_t quads = 1000;
  Words source(4 * quads);
  std::iota(source.begin(), source.end(), 1U);
  const Launch launch{"address", {64}, plan::push_bytes(quads), {0, 1}, groups_of(quads), true};
  const Outcome outcome = run({launch}, {source, Words(4 * quads, 0)});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < source.size(); ++i)
    wrong += outcome.buffers[1][i] != source[source.size() - 1 - i] ? 1U : 0U;
  expect(report, "how many words are wrong that were copied by address", wrong, 0);
  if (!outcome.guards_intact) add_fault(report, "a copy by address wrote next to its buffer");
  check_far_words(report, vk::Buffer(testing::context(), 1U << 22U, vk::Memory::device, "selftest"), 20'004);
}

/// Copies of odd sizes at odd offsets, and all of a large buffer, by the transfer commands that training uses.
void check_copies(CaseReport& report) {
  vk::Context& context = testing::context();
  constexpr std::size_t words = (16U << 20U) / 4 + 3;
  const vk::Buffer buffer(context, words * 4, vk::Memory::device, "selftest");
  Words want(words);
  std::uint32_t state = 31;
  for (std::uint32_t& word : want) word = next_random(state);
  vk::upload(context, buffer, 0, std::as_bytes(std::span(want)));
  for (const std::size_t size : {1U, 3U, 17U, 1023U, 4097U, 65537U}) {
    const std::size_t offset = next_random(state) % (words - size);
    for (std::size_t i = 0; i < size; ++i) want[offset + i] = next_random(state);
    vk::upload(context, buffer, offset * 4, std::as_bytes(std::span(want)).subspan(offset * 4, size * 4));
    const std::size_t filled = next_random(state) % (words - size);
    vk::fill(context, buffer, filled * 4, size * 4, 0xDEADBEEFU);
    std::fill_n(want.begin() + static_cast<std::ptrdiff_t>(filled), size, 0xDEADBEEFU);
  }
  Words got(words);
  vk::download(context, buffer, 0, std::as_writable_bytes(std::span(got)));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < words; ++i) wrong += got[i] != want[i] ? 1U : 0U;
  expect(report, fmt::format("how many of {} words are wrong after copies and fills", words), wrong, 0);
}

}  // namespace

std::vector<Case> memory_cases() {
  return {
      {"memory/atomics", "Atomics of all invocations on the same words, and in shared memory", Wanted::quick,
       check_atomics},
      {"memory/shared", "Invocations of a workgroup exchange numbers in shared memory, with barriers", Wanted::quick,
       [](CaseReport& report) { check_exchange(report, "shared"); }},
      {"memory/buffer", "Invocations of a workgroup exchange numbers in a buffer, with barriers", Wanted::quick,
       [](CaseReport& report) { check_exchange(report, "buffer"); }},
      {"memory/messages", "Litmus tests across workgroups: message passing and coherence", Wanted::quick,
       check_messages},
      {"memory/dispatches", "Dispatches that read what the one before wrote", Wanted::quick,
       [](CaseReport& report) { check_chain(report, 1); }},
      {"memory/submits", "The same across submits, two of which are under way at a time", Wanted::normal,
       [](CaseReport& report) { check_chain(report, 16); }},
      {"memory/addresses", "Buffers by their addresses", Wanted::quick, check_addresses},
      {"memory/copies", "Copies and fills of any size, read back", Wanted::quick, check_copies},
  };
}

}  // namespace halfstep::selftest
