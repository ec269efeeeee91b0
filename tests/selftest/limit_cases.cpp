// Constants, loops, workgroups, time.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "harness/device.h"
#include "plan/dispatch.h"
#include "selftest/bed.h"
#include "selftest/numbers.h"

namespace halfstep::selftest {
namespace {

void check_constants(CaseReport& report) {
  std::array<std::uint32_t, 32> pushed{};
  for (std::uint32_t i = 0; i < 32; ++i) pushed[i] = 0x01010101U * i + 7;
  for (const std::uint32_t length : {1U, 9U}) {
    const Words constants{32, 41, static_cast<std::uint32_t>(-9), bits_of(2.75F), 1, length};
    const Outcome outcome = run({{"constants", constants, plan::push_bytes(pushed), {0}, {2, 1, 1}}}, {Words(40, 0)});
    const Words& got = outcome.buffers[0];
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < length; ++i) sum += (length - 1 - i) * (length - 1 - i) * (i + 1);
    const std::array<std::uint32_t, 8> want{41, constants[2], constants[3], 1, sum, 77, 123 + length, 32};
    const std::array<const char*, 8> names{"a number",          "a negative number", "a real number",
                                           "a switch",          "an array's sum",    "an unset constant",
                                           "a computed number", "a workgroup's size"};
    for (std::size_t i = 0; i < 8; ++i)
      expect(report, fmt::format("{} of specialization constants", names.at(i)), got[i], want.at(i));
    for (std::size_t i = 0; i < 32; ++i)
      expect(report, fmt::format("word {} of 128 bytes of push constants", i), got[8 + i], pushed.at(i));
  }
}

struct Rounds {
  std::uint32_t outer;
  std::uint32_t inner;
};

void check_loops(CaseReport& report) {
  constexpr Rounds rounds{300, 700};
  std::uint32_t state = 0;
  for (const char* kind : {"single", "nested", "sequence", "do_while"}) {
    const Outcome outcome =
        run({{fmt::format("loops.{}", kind), {64}, plan::push_bytes(rounds), {0}, {1, 1, 1}}}, {Words(64, 0)});
    state = 63;
    std::uint32_t ended = 0;  // after which round a loop that ended early did
    for (std::uint32_t i = 0; i < rounds.outer * rounds.inner; ++i) {
      if (state == outcome.buffers[0][63] && ended == 0 && i > 0) ended = i;
      state = state * 1664525U + 1013904223U;
    }
    if (outcome.buffers[0][63] == state) continue;
    const std::string when = ended > 0 ? fmt::format("ended after {}", ended) : "gave another number";
    add_fault(report, fmt::format("a loop ({}) of {} rounds {}", kind, rounds.outer * rounds.inner, when));
    if (report.kernel.empty()) report.kernel = last_kernel();
  }
}

struct Range {
  std::uint32_t first;
  std::uint32_t end;
  std::uint32_t inner;
};

/// What ranges.comp computes in an invocation whose range begins `later` rounds late.
std::uint32_t range_sum(const Words& source, const Range& range, std::uint32_t me, std::uint32_t later) {
  std::uint32_t sum = me;
  for (std::uint32_t i = range.first + 2 * later; i < range.end; i += 2) {
    std::array<std::uint32_t, 4> part{};
    for (std::uint32_t j = 0; j < range.inner; ++j)
      part.at(j % 4) += source[(i + j) % 256] ^ source[(me * i + j) % 256];
    sum = sum * 3 + part[0] + 5 * part[1] + 7 * part[2] + 11 * part[3];
  }
  return sum;
}

void check_ranges(CaseReport& report) {
  constexpr std::uint32_t count = 64 * 12;
  Words source(256);
  std::uint32_t state = 17;
  for (std::uint32_t& word : source) word = next_random(state);
  for (const std::string kind : {"all", "groups", "invocations"}) {
    for (const Range& range : {Range{0, 9, 8}, Range{7, 7, 8}, Range{30, 24, 8}, Range{40, 43, 8}, Range{2, 5, 0}}) {
      const Outcome outcome =
          run({{"ranges." + kind, {64}, plan::push_bytes(range), {0, 1}, groups_of(count)}}, {source, Words(count, 0)});
      std::size_t wrong = 0;
      for (std::uint32_t me = 0; me < count; ++me) {
        const std::uint32_t later = kind == "all" ? 0 : (kind == "groups" ? me / 64 : me) % 3;
        wrong += outcome.buffers[1][me] != range_sum(source, range, me, later) ? 1U : 0U;
      }
      expect(report,
             fmt::format("how many of {} sums over the range from {} to {} are wrong ({})", count, range.first,
                         range.end, kind),
             wrong, 0);
    }
  }
}

void check_groups(CaseReport& report) {
  const auto& limit = testing::context().capabilities().limits.maxComputeWorkGroupCount;
  std::vector<std::array<std::uint32_t, 3>> wanted{{65535, 1, 1}, {3, 65535, 1}, {3, 2, 20000}, {257, 255, 2}};
  if (limit[0] > 65535) {
    wanted.push_back({65536, 1, 1});
    wanted.push_back({200000, 1, 1});
  } else {
    report.facts.push_back("a dispatch has at most 65,535 workgroups along x");
  }
  for (const auto& groups : wanted) {
    if (groups[1] > limit[1] || groups[2] > limit[2]) continue;
    const std::size_t count = std::size_t{groups[0]} * groups[1] * groups[2];
    const Outcome outcome = run({{"groups", {1}, {}, {0}, groups}}, {Words(count, 0)});
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = static_cast<std::uint32_t>(i % groups[0]);
      const auto y = static_cast<std::uint32_t>(i / groups[0] % groups[1]);
      const auto z = static_cast<std::uint32_t>(i / groups[0] / groups[1]);
      wrong += outcome.buffers[0][i] != x + 7 * y + 11 * z + 1 ? 1U : 0U;
    }
    expect(report, fmt::format("how many of {} x {} x {} workgroups did not run once", groups[0], groups[1], groups[2]),
           wrong, 0);
  }
}

void check_time(CaseReport& report) {
  vk::Context& context = testing::context();
  if (context.capabilities().timestamp_bits == 0) return set_missing(report, "the queue has no timestamps");
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Launch> launches(6, {"loops.single", {64}, plan::push_bytes(Rounds{100, 400}), {0}, {64, 1, 1}});
  const Outcome outcome = run(launches, {Words(64 * 64, 0)});
  const double host = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  double sum = 0;
  for (const double microseconds : outcome.microseconds) {
    if (microseconds < 0) add_fault(report, "a later timestamp is less than an earlier one");
    sum += microseconds;
  }
  if (sum <= 0) add_fault(report, "timestamps do not advance while the device computes");
  if (sum > 1.05 * host)
    add_fault(report, fmt::format("by its timestamps the device took {:.0f} us, while {:.0f} passed", sum, host));
  report.facts.push_back(fmt::format("{} bits, {:.2f} ns a tick", context.capabilities().timestamp_bits,
                                     static_cast<double>(context.capabilities().limits.timestampPeriod)));
}

/// The same computation over and over for a minute: heat and power must not change a bit.
void check_load(CaseReport& report) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const std::vector<Launch> launches(8, {"loops.single", {64}, plan::push_bytes(Rounds{100, 600}), {0}, {256, 1, 1}});
  Words first;
  int runs = 0;
  std::size_t wrong = 0;
  while (std::chrono::steady_clock::now() < end) {
    const Words got = run(launches, {Words(256 * 64, 0)}).buffers[0];
    if (first.empty()) first = got;
    for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != first[i] ? 1U : 0U;
    ++runs;
  }
  expect(report, "how many numbers changed under load", wrong, 0);
  report.facts.push_back(fmt::format("{} runs in a minute", runs));
}

}  // namespace

std::vector<Case> limit_cases() {
  return {
      {"limit/constants", "Specialization constants of every kind, and 128 bytes of push constants", Wanted::quick,
       check_constants},
      {"limit/loops", "Loops of more than 65,535 rounds", Wanted::quick, check_loops},
      {"limit/ranges", "Loops over ranges that may be empty, of the host or of some invocations", Wanted::quick,
       check_ranges},
      {"limit/groups", "Dispatches of 65,535 workgroups and more, along each axis", Wanted::quick, check_groups},
      {"limit/time", "Timestamps", Wanted::quick, check_time},
      {"limit/load", "The same numbers for a minute", Wanted::full, check_load},
  };
}

}  // namespace halfstep::selftest
