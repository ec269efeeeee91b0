// What a device computes of f32, of integers, and of conversions.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "plan/dispatch.h"
#include "reference/narrow.h"
#include "selftest/bed.h"
#include "selftest/numbers.h"

namespace halfstep::selftest {
namespace {

constexpr std::size_t count = 16384;

/// Runs one operation of arithmetic.comp on each triple. Adds a fault if the kernel writes where it may not.
Words computed(CaseReport& report, const std::string& operation, const std::vector<Words>& inputs) {
  const std::string kernel = "arithmetic." + operation;
  const Words poisoned(inputs[0].size(), 0xA5A5A5A5U);
  const auto size = static_cast<std::uint32_t>(inputs[0].size());
  const Launch launch{kernel, {64}, plan::push_bytes(size), {0, 1, 2, 3}, groups_of(inputs[0].size())};
  const Outcome outcome = run({launch}, {inputs[0], inputs[1], inputs[2], poisoned});
  if (!outcome.guards_intact) add_fault(report, kernel + " wrote next to its buffers");
  return outcome.buffers[3];
}

std::vector<Words> three_of_numbers() {
  const Format format = single_format();
  return {test_numbers(format, count, 1), test_numbers(format, count, 2), test_numbers(format, count, 3)};
}

double none(double /*a*/, double /*b*/) {
  return 0;
}

auto ulps(double allowed) {
  return [allowed](double /*a*/, double /*b*/) { return allowed; };
}

Case operation_case(const std::string& name, const std::string& what, const std::vector<Operation>& operations) {
  return {"f32/" + name, what, Wanted::quick, [operations](CaseReport& report) {
            const std::vector<Words> inputs = three_of_numbers();
            for (const Operation& one : operations) {
              const std::size_t faults = report.faults.size();
              compare(report, one, single_format(), inputs, computed(report, one.name, inputs));
              if (report.faults.size() > faults && report.kernel.empty()) report.kernel = last_kernel();
            }
          }};
}

bool is_finite_pair(double a, double b) {
  return std::isfinite(a) && std::isfinite(b);
}

/// The precision is what Vulkan requires ("Precision and Operation of SPIR-V Instructions").
std::vector<Operation> exact_operations() {
  return {
      {"add", [](double a, double b, double) { return a + b; }, none},
      {"sub", [](double a, double b, double) { return a - b; }, none},
      {"mul", [](double a, double b, double) { return a * b; }, none},
      {"floor", [](double a, double, double) { return std::floor(a); }, none},
      {"ceil", [](double a, double, double) { return std::ceil(a); }, none},
      {"trunc", [](double a, double, double) { return std::trunc(a); }, none},
      {"round_even", [](double a, double, double) { return std::nearbyint(a); }, none},
      {"abs", [](double a, double, double) { return std::abs(a); }, none},
      {"neg", [](double a, double, double) { return -a; }, none},
  };
}

std::vector<Operation> division_operations() {
  const auto ordinary = [](double a, double b) {
    return is_finite_pair(a, b) && std::abs(b) >= 0x1p-126 && std::abs(b) <= 0x1p126;
  };
  const auto positive = [](double a, double) { return a >= 0x1p-126 && std::isfinite(a); };
  return {{"div", [](double a, double b, double) { return a / b; }, ulps(2.5), 0, ordinary},
          // 1 / inversesqrt(a), whose units may be half as large.
          {"sqrt", [](double a, double, double) { return std::sqrt(a); }, ulps(6.5), 0, positive},
          {"inversesqrt", [](double a, double, double) { return 1 / std::sqrt(a); }, ulps(2), 0, positive}};
}

std::vector<Operation> transcendental_operations() {
  const auto positive = [](double a, double) { return a >= 0x1p-126 && std::isfinite(a); };
  const auto turn = [](double a, double) { return std::abs(a) <= M_PI; };
  const auto exponent = [](double a, double) { return 3 + 2 * std::abs(a); };
  const auto moderate = [](double a, double b) { return a >= 0x1p-20 && a <= 0x1p20 && std::abs(b) <= 4; };
  // exp2(b * log2(a)): what the exponent is off by counts besides, times log(2) * 2^24 units.
  const auto power = [](double a, double b) { return 16 + 8 * std::abs(b * std::log2(a)) + 8 * std::abs(b); };
  const auto finite = [](double a, double) { return std::isfinite(a); };
  return {{"exp", [](double a, double, double) { return std::exp(a); }, exponent, 0, finite},
          {"exp2", [](double a, double, double) { return std::exp2(a); }, exponent, 0, finite},
          {"log", [](double a, double, double) { return std::log(a); }, ulps(3), 0x1p-21, positive},
          {"log2", [](double a, double, double) { return std::log2(a); }, ulps(3), 0x1p-21, positive},
          {"tanh", [](double a, double, double) { return std::tanh(a); }, ulps(8), 0x1p-20},
          {"sin", [](double a, double, double) { return std::sin(a); }, ulps(1), 0x1p-11, turn},
          {"cos", [](double a, double, double) { return std::cos(a); }, ulps(1), 0x1p-11, turn},
          {"pow", [](double a, double b, double) { return std::pow(a, b); }, power, 0, moderate}};
}

void check_fma(CaseReport& report) {
  const std::vector<Words> inputs = three_of_numbers();
  const Words got = computed(report, "fma", inputs);
  // Fused or not: the product may be rounded before the sum.
  const Operation operation{
      "fma", [](double a, double b, double c) { return static_cast<double>(static_cast<long double>(a) * b + c); },
      ulps(1), 0,
      // Elsewhere the product may become infinite before the sum.
      [](double a, double b) { return std::abs(a * b) < 0x1p128; }, true};
  std::size_t fused = 0;
  std::size_t apart = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float a = float_of(inputs[0][i]);
    const float b = float_of(inputs[1][i]);
    const float c = float_of(inputs[2][i]);
    const float product = a * b;
    const float twice = product + c;
    const float once = std::fma(a, b, c);
    if (once == twice || std::isnan(once) || std::isnan(twice)) continue;
    fused += float_of(got[i]) == once ? 1U : 0U;
    apart += float_of(got[i]) == twice ? 1U : 0U;
  }
  report.facts.push_back(fmt::format("fma rounds once in {} and twice in {} of the cases that tell", fused, apart));
  compare(report, operation, single_format(), inputs, got);
  if (!report.faults.empty()) report.kernel = last_kernel();
}

/// Products and sums that must not be contracted to an fma: reproducible trainings rely on two roundings.
void check_contraction(CaseReport& report) {
  const Format format = single_format();
  if (!format.rounds_to_nearest)
    return set_missing(report, "the device does not promise to round to nearest: two roundings are not known");
  std::vector<Words> inputs = three_of_numbers();
  for (std::size_t i = 0; i < inputs[2].size(); i += 2)  // a sum of about nothing, or of what a product's rounding lost
    inputs[2][i] = bits_of(-(float_of(inputs[0][i]) * float_of(inputs[1][i])));
  const Operation twice{
      "mul_add", [format](double a, double b, double c) { return format.nearest(a * b) + c; }, none, 0, {}, true};
  compare(report, twice, format, inputs, computed(report, twice.name, inputs));
  if (!report.faults.empty()) report.kernel = last_kernel();
  std::vector<Words> negated = inputs;
  for (std::uint32_t& word : negated[2]) word ^= 0x80000000U;
  Operation less = twice;
  less.name = "mul_sub of -c";
  compare(report, less, format, inputs, computed(report, "mul_sub", negated));
  if (!report.faults.empty() && report.kernel.empty()) report.kernel = last_kernel();
}

/// min, max and comparisons, with NaN.
void check_order(CaseReport& report) {
  const std::vector<Words> inputs = three_of_numbers();
  const Format format = single_format();
  const auto number = [](double a, double b) { return !std::isnan(a) && !std::isnan(b); };
  const Operation least{"min", [](double a, double b, double) { return std::min(a, b); }, none, 0, number};
  const Operation largest{"max", [](double a, double b, double) { return std::max(a, b); }, none, 0, number};
  for (const Operation& one : {least, largest}) {
    const Words got = computed(report, one.name, inputs);
    compare(report, one, format, inputs, got);
    if (!report.faults.empty() && report.kernel.empty()) report.kernel = last_kernel();
    std::size_t nan = 0;
    std::size_t other = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (number(float_of(inputs[0][i]), float_of(inputs[1][i]))) continue;
      ++(std::isnan(float_of(got[i])) ? nan : other);
    }
    report.facts.push_back(
        fmt::format("{} of a NaN and a number is NaN in {} and the number in {} cases", one.name, nan, other));
  }
  const Words got = computed(report, "less", inputs);
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = float_of(inputs[0][i]);
    const double b = float_of(inputs[1][i]);
    const auto bits = [](double x, double y) {
      return (x < y ? 1U : 0U) | (x <= y ? 2U : 0U) | (x == y ? 4U : 0U) | (std::isnan(x) ? 8U : 0U) |
             (std::isinf(x) ? 16U : 0U);
    };
    const bool fine =
        got[i] == bits(a, b) || (!format.preserves_denormals && got[i] == bits(format.flushed(a), format.flushed(b)));
    if (!fine && wrong++ == 0) first = fmt::format("{} and {} give {:#x}, not {:#x}", a, b, got[i], bits(a, b));
  }
  if (wrong == 0) return;
  add_fault(report, fmt::format("{} of {} comparisons are wrong, first: {}", wrong, got.size(), first));
  if (report.kernel.empty()) report.kernel = last_kernel();
}

using Whole = std::function<std::uint32_t(std::uint32_t, std::uint32_t, std::uint32_t)>;

/// An operation whose bits are known.
void check_bits(CaseReport& report, const std::string& name, const std::vector<Words>& inputs, const Whole& right) {
  const Words got = computed(report, name, inputs);
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::uint32_t want = right(inputs[0][i], inputs[1][i], inputs[2][i]);
    if (got[i] == want || wrong++ > 0) continue;
    first = fmt::format("{}({:#x}, {:#x}, {:#x}) is {:#x}, not {:#x}", name, inputs[0][i], inputs[1][i], inputs[2][i],
                        got[i], want);
  }
  if (wrong == 0) return;
  add_fault(report, fmt::format("{} of {} results of {} are wrong, first: {}", wrong, got.size(), name, first));
  if (report.kernel.empty()) report.kernel = last_kernel();
}

std::vector<Words> three_of_words() {
  std::vector<Words> inputs(3);
  std::uint32_t state = 77;
  const std::array<std::uint32_t, 6> special{0, 1, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU, 0xFFFFU};
  for (Words& words : inputs) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t random = next_random(state);
      words.push_back(random % 5 == 0 ? special[(random >> 8U) % special.size()]
                                      : next_random(state) >> (random >> 27U));
    }
  }
  return inputs;
}

void check_integers(CaseReport& report) {
  using U = std::uint32_t;
  const std::vector<Words> inputs = three_of_words();
  const std::vector<std::pair<std::string, Whole>> operations{
      {"imul", [](U i, U j, U) { return i * j; }},
      {"umulhi", [](U i, U j, U) { return static_cast<U>(std::uint64_t{i} * j >> 32U); }},
      {"udiv", [](U i, U j, U) { return i / std::max(j, 1U); }},
      {"umod", [](U i, U j, U) { return i % std::max(j, 1U); }},
      {"shl", [](U i, U j, U) { return i << (j & 31U); }},
      {"shr", [](U i, U j, U) { return i >> (j & 31U); }},
      {"sar", [](U i, U j, U) { return static_cast<U>(static_cast<std::int32_t>(i) >> (j & 31U)); }},
      {"extract", [](U i, U j, U k) { return (i >> (j & 15U)) & ((2U << (k & 15U)) - 1U); }},
      {"msb", [](U i, U, U) { return static_cast<U>(31 - std::countl_zero(i)); }},
      {"bitcount", [](U i, U, U) { return static_cast<U>(std::popcount(i)); }},
  };
  for (const auto& [name, right] : operations) check_bits(report, name, inputs, right);
}

void check_conversions(CaseReport& report) {
  const std::vector<Words> words = three_of_words();
  check_bits(report, "bits", three_of_numbers(), [](auto i, auto, auto) { return i; });
  Words whole;
  for (const std::uint32_t word : words[0])
    whole.push_back(bits_of(static_cast<float>(static_cast<std::int32_t>(word) / 4)));
  check_bits(report, "to_int", {whole, whole, whole},
             [](auto i, auto, auto) { return static_cast<std::uint32_t>(static_cast<std::int32_t>(float_of(i))); });
  for (std::uint32_t& word : whole) word &= 0x7FFFFFFFU;
  check_bits(report, "to_uint", {whole, whole, whole},
             [](auto i, auto, auto) { return static_cast<std::uint32_t>(float_of(i)); });
  // Exact up to 2^24; beyond, either neighbour unless the device promises the nearest.
  std::vector<Words> small = words;
  for (std::uint32_t& word : small[0]) word &= 0xFFFFFFU;
  check_bits(report, "from_uint", small, [](auto i, auto, auto) { return bits_of(static_cast<float>(i)); });
  for (std::uint32_t& word : small[0]) word = static_cast<std::uint32_t>(static_cast<std::int32_t>(word) - 0x800000);
  check_bits(report, "from_int", small,
             [](auto i, auto, auto) { return bits_of(static_cast<float>(static_cast<std::int32_t>(i))); });
}

/// One half of each word, unpacked, whose bits are known. Returns how many denormals are taken for 0.
std::size_t check_unpacked(CaseReport& report, const std::string& kernel, const Words& words,
                           const std::vector<std::uint16_t>& halves) {
  const Words wide = computed(report, kernel, {words, words, words});
  std::size_t wrong = 0;
  std::size_t flushed = 0;
  std::string first;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const auto want = static_cast<float>(reference::half.value(halves[i]));
    const float got = float_of(wide[i]);
    if (got == want || (std::isnan(want) && std::isnan(got))) continue;
    if (got == 0 && std::abs(want) < 0x1p-14F) {
      ++flushed;
    } else if (wrong++ == 0) {
      first = fmt::format("the f16 {:#06x} of {:#010x} is {}, not {}", halves[i], words[i], got, want);
    }
  }
  if (wrong == 0) return flushed;
  add_fault(report, fmt::format("unpackHalf2x16 widens {} of 65536 wrongly, first: {}", wrong, first));
  if (report.kernel.empty()) report.kernel = last_kernel();
  return flushed;
}

/// unpackHalf2x16 of every pattern of 16 bits in each half of a word, and packHalf2x16 of two numbers that f16 has.
void check_half_conversions(CaseReport& report) {
  Words words;
  std::vector<std::uint16_t> lower;
  std::vector<std::uint16_t> upper;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    lower.push_back(static_cast<std::uint16_t>(i));
    upper.push_back(static_cast<std::uint16_t>(i * 40503 + 12345));  // each once, since the factor is odd
    words.push_back(i | std::uint32_t{upper.back()} << 16U);
  }
  const std::size_t flushed = check_unpacked(report, "unpack_half", words, lower);
  check_unpacked(report, "unpack_second", words, upper);
  report.facts.push_back(fmt::format("unpackHalf2x16 takes {} of 2046 denormal f16 for 0", flushed));
  // What f16 has must be packed as it is; a denormal may become 0.
  Words ordinary;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const double value = reference::half.value(static_cast<std::uint16_t>(i));
    if (value == 0 || std::abs(value) >= 0x1p-14) ordinary.push_back(bits_of(static_cast<float>(value)));
  }
  Words others = ordinary;
  std::ranges::rotate(others, others.begin() + 1);
  check_bits(report, "pack_half", {ordinary, others, ordinary}, [](auto i, auto j, auto) {
    return reference::half.bits(float_of(i)) | static_cast<std::uint32_t>(reference::half.bits(float_of(j))) << 16U;
  });
}

}  // namespace

std::vector<Case> number_cases() {
  return {
      operation_case("exact", "Sums, products and roundings to whole numbers, correctly rounded", exact_operations()),
      {"f32/fma", "fma, with one rounding or two", Wanted::quick, check_fma},
      {"f32/contraction", "A product and a sum, each rounded, where contraction is forbidden", Wanted::quick,
       check_contraction},
      {"f32/order", "min, max and comparisons of numbers, infinities and NaN", Wanted::quick, check_order},
      operation_case("division", "Division and roots, as exact as Vulkan requires", division_operations()),
      operation_case("functions", "exp, log, tanh, sine and powers, as exact as Vulkan requires",
                     transcendental_operations()),
      {"integer/arithmetic", "Products, division, shifts and bit fields of 32-bit integers", Wanted::quick,
       check_integers},
      {"integer/conversions", "Between f32 and integers, where both have the number", Wanted::quick, check_conversions},
      {"f16/packing", "f16 in halves of words: every pattern widened, and packed again", Wanted::quick,
       check_half_conversions},
  };
}

}  // namespace halfstep::selftest
