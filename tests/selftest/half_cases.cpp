// What a device computes of f16, and how it accesses 16-bit elements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/device.h"
#include "plan/dispatch.h"
#include "reference/narrow.h"
#include "selftest/bed.h"
#include "selftest/numbers.h"

namespace halfstep::selftest {
namespace {

void check_arithmetic(CaseReport& report) {
  if (!testing::context().capabilities().float16_arithmetic)
    return set_missing(report, "the device has no f16 arithmetic (shaderFloat16)");
  const auto exactly = [](double, double) { return 0.0; };
  const auto one = [](double, double) { return 1.0; };
  const auto ordinary = [](double a, double b) {
    return std::isfinite(a) && std::isfinite(b) && std::abs(b) >= 0x1p-14 && std::abs(b) <= 0x1p14;
  };
  const auto positive = [](double a, double) { return a >= 0x1p-14 && std::isfinite(a); };
  const auto numbers = [](double a, double b) { return !std::isnan(a) && !std::isnan(b); };
  const std::vector<Operation> operations{
      {"add", [](double a, double b, double) { return a + b; }, exactly},
      {"mul", [](double a, double b, double) { return a * b; }, exactly},
      // Where the product alone is finite: it may be rounded before the sum.
      {"fma", [](double a, double b, double c) { return a * b + c; }, one, 0,
       [](double a, double b) { return std::abs(a * b) < 65504; }, true},
      {"div", [](double a, double b, double) { return a / b; }, [](double, double) { return 2.5; }, 0, ordinary},
      {"sqrt", [](double a, double, double) { return std::sqrt(a); }, [](double, double) { return 6.5; }, 0, positive},
      {"exp", [](double a, double, double) { return std::exp(a); },
       [](double a, double) { return 1 + 2 * std::abs(a); }, 0, [](double a, double) { return std::isfinite(a); }},
      {"tanh", [](double a, double, double) { return std::tanh(a); }, [](double, double) { return 8.0; }, 0x1p-8},
      {"min", [](double a, double b, double) { return std::min(a, b); }, exactly, 0, numbers},
      {"max", [](double a, double b, double) { return std::max(a, b); }, exactly, 0, numbers}};
  const Format format = half_format();
  const std::vector<Words> in{test_numbers(format, 16384, 4), test_numbers(format, 16384, 5),
                              test_numbers(format, 16384, 6)};
  for (const Operation& operation : operations) {
    const Launch launch{
        "half." + operation.name, {64}, plan::push_bytes(std::uint32_t{16384}), {0, 1, 2, 3}, groups_of(16384)};
    const std::size_t faults = report.faults.size();
    compare(report, operation, format, in, run({launch}, {in[0], in[1], in[2], Words(16384, 0xA5A5A5A5U)}).buffers[3]);
    if (report.faults.size() > faults && report.kernel.empty()) report.kernel = last_kernel();
  }
}

bool has_storage(CaseReport& report) {
  if (testing::context().capabilities().storage_16bit) return true;
  set_missing(
      report,
      "the device has no 16-bit elements in storage buffers (storageBuffer16BitAccess), or Halfstep does not use "
      "them on this driver");
  return false;
}

struct Counts {
  std::uint32_t count;
  std::uint32_t step;
};

Launch storage_launch(const std::string& operation, std::uint32_t count, std::uint32_t step) {
  return {"storage16." + operation, {64}, plan::push_bytes(Counts{count, step}), {0, 1}, groups_of(count)};
}

std::uint32_t half_at(const Words& words, std::size_t i) {
  return words[i / 2] >> (i % 2 * 16) & 0xFFFFU;
}

/// Every pattern is copied and widened; elements beside those that are written stay as they are.
void check_storage(CaseReport& report) {
  if (!has_storage(report)) return;
  Words all(32768);
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = 2 * i | (2 * i + 1) << 16U;
  const std::uint32_t step = 3;
  const Outcome copied = run({storage_launch("copy", 65536, step)}, {all, Words(32768, 0x5A5A5A5AU)});
  std::size_t wrong = 0;
  std::string first;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const std::uint32_t want = i % step == 0 ? i : 0x5A5AU;
    const std::uint32_t got = half_at(copied.buffers[1], i);
    const bool nan = i % step == 0 && std::isnan(reference::half.value(static_cast<std::uint16_t>(i)));
    if (got == want || (nan && std::isnan(reference::half.value(static_cast<std::uint16_t>(got))))) continue;
    if (wrong++ == 0) first = fmt::format("element {} is {:#06x}, not {:#06x}", i, got, want);
  }
  if (!copied.guards_intact) add_fault(report, "a kernel that stores 16-bit elements wrote next to its buffer");
  if (wrong > 0) {
    add_fault(report, fmt::format("{} of 65536 elements of 16 bits are wrong after every third was stored, first: {}",
                                  wrong, first));
    report.kernel = last_kernel();
  }
  const Words wide = run({storage_launch("widen", 65536, 1)}, {all, Words(65536, 0x5A5A5A5AU)}).buffers[1];
  wrong = 0;
  std::size_t flushed = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto want = static_cast<float>(reference::half.value(static_cast<std::uint16_t>(i)));
    const float got = float_of(wide[i]);
    if (got == want || (std::isnan(got) && std::isnan(want))) continue;
    const bool denormal = got == 0 && std::abs(want) < 0x1p-14F;
    flushed += denormal ? 1U : 0U;
    if (!denormal && wrong++ == 0) first = fmt::format("{:#06x} is {}, not {}", i, got, want);
  }
  report.facts.push_back(fmt::format("a load takes {} of 2046 denormal f16 for 0", flushed));
  if (wrong == 0) return;
  add_fault(report, fmt::format("{} of 65536 patterns are widened wrongly, first: {}", wrong, first));
  if (report.kernel.empty()) report.kernel = last_kernel();
}

/// How f32 becomes f16 where it is stored: to nearest, towards zero, or what the driver will.
void check_narrowing(CaseReport& report) {
  if (!has_storage(report)) return;
  std::vector<float> numbers;
  std::uint32_t state = 9;
  for (std::uint16_t i = 0; i < 0x7C00; ++i) {  // each number, the tie after it, and its neighbours
    const auto low = static_cast<float>(reference::half.value(i));
    const auto high =
        i == 0x7BFF ? 65536.0F : static_cast<float>(reference::half.value(static_cast<std::uint16_t>(i + 1)));
    const float tie = (low + high) / 2;
    for (const float value : {low, tie, std::nextafter(tie, 0.0F), std::nextafter(tie, 1e9F)})
      numbers.push_back((next_random(state) & 1U) != 0 ? -value : value);
  }
  Words bits;
  for (const float value : numbers) bits.push_back(bits_of(value));
  const Words got = run({storage_launch("narrow", static_cast<std::uint32_t>(bits.size()), 1)},
                        {bits, Words(bits.size() / 2, 0x5A5A5A5AU)})
                        .buffers[1];
  std::array<std::size_t, 4> kinds{};  // nearest even, a neighbour of it, 0 for a denormal, anything else
  std::string first;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::uint32_t want = reference::half.bits(numbers[i]);
    const std::uint32_t one = half_at(got, i);
    const bool beside = one + 1 == want || one == want + 1;
    const bool flushed = (one & 0x7FFFU) == 0 && std::abs(numbers[i]) < 0x1p-14F;
    const std::size_t kind = one == want ? 0 : beside ? 1 : flushed ? 2 : 3;
    ++kinds.at(kind);
    const bool promised = half_format().rounds_to_nearest && kind == 1;
    if ((kind == 3 || promised) && first.empty())
      first = fmt::format("{:.9g} is stored as {:#06x}, the nearest is {:#06x}", numbers[i], one, want);
  }
  report.facts.push_back(
      fmt::format("of {} numbers {} are rounded to nearest even, {} the other way, {} to 0 as denormals",
                  numbers.size(), kinds[0], kinds[1], kinds[2]));
  if (first.empty()) return;
  add_fault(report, "rounding to f16 where it is stored: " + first);
  report.kernel = last_kernel();
}

/// Whether 16-bit elements are as fast as the same bytes in words.
void check_speed(CaseReport& report) {
  if (!has_storage(report)) return;
  constexpr std::uint32_t words = 1U << 19U;
  const Launch wide{"chain", {64}, plan::push_bytes(Counts{words, 0}), {0, 1}, groups_of(words)};
  const Launch narrow = storage_launch("copy", 2 * words, 1);
  std::vector<Launch> launches;
  constexpr std::size_t times = 12;  // of which the fastest counts: other programs may use the device
  for (std::size_t i = 0; i < times; ++i) launches.insert(launches.end(), {narrow, wide});
  const Outcome outcome = run(launches, {Words(words, 1), Words(words, 0)});
  if (outcome.microseconds.size() < launches.size()) return set_missing(report, "the queue has no timestamps");
  std::array<double, 2> fastest{INFINITY, INFINITY};
  for (std::size_t i = 0; i < launches.size(); ++i)
    fastest.at(i % 2) = std::min(fastest.at(i % 2), outcome.microseconds[i]);
  const double ratio = fastest[0] / std::max(1e-3, fastest[1]);
  report.facts.push_back(fmt::format("2 MiB in elements of 16 bits take {:.1f} times the time of 32 bits", ratio));
  if (ratio > 4) report.verdict = Verdict::slow;
}

}  // namespace

std::vector<Case> half_cases() {
  return {{"f16/arithmetic", "Sums, products, fma, division, exp and tanh in f16", Wanted::quick, check_arithmetic},
          {"f16/storage", "16-bit elements of storage buffers", Wanted::quick, check_storage},
          {"f16/rounding", "f32 stored in 16-bit elements: each number, each tie and its neighbours", Wanted::quick,
           check_narrowing},
          {"f16/speed", "16-bit elements against words of the same bytes", Wanted::normal, check_speed}};
}

}  // namespace halfstep::selftest
