// Matrix units: every shape and combination of types that the device reports, exact on whole numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plan/dispatch.h"
#include "selftest/bed.h"
#include "selftest/matrix_device.h"
#include "selftest/numbers.h"
#include "selftest/planted.h"

namespace halfstep::selftest {
namespace {

constexpr std::uint64_t poison = 0x7E7E7E7E;  // a NaN in f16, large in other types

/// Elements of one type in a buffer.
class Elements {
 public:
  Elements(Component component, std::size_t count) : component_(component), bytes_(count * bytes(component) + 3) {
    for (std::size_t i = 0; i < count; ++i) set_bits(i, poison);
  }
  Elements(Component component, const Words& words) : component_(component), bytes_(words.size() * 4) {
    std::memcpy(bytes_.data(), words.data(), bytes_.size());
  }

  void set(std::size_t i, double value) { set_bits(i, bits(component_, value)); }
  double at(std::size_t i) const { return number(component_, bits_at(i)); }
  std::uint64_t bits_at(std::size_t i) const {
    std::uint64_t read = 0;
    std::memcpy(&read, &bytes_[i * bytes(component_)], bytes(component_));
    return read;
  }
  bool is_poison(std::size_t i) const {
    return bits_at(i) == (poison & ((std::uint64_t{1} << (8 * bytes(component_))) - 1));
  }
  Words words() const {
    Words all(bytes_.size() / 4);
    std::memcpy(all.data(), bytes_.data(), all.size() * 4);
    return all;
  }

 private:
  void set_bits(std::size_t i, std::uint64_t value) {
    std::memcpy(&bytes_[i * bytes(component_)], &value, bytes(component_));
  }

  Component component_;
  std::vector<unsigned char> bytes_;
};

/// How one matrix lies in its buffer.
struct Place {
  std::uint32_t first, stride;
  bool by_columns;

  std::size_t at(std::uint32_t row, std::uint32_t column) const {
    return first + std::size_t{by_columns ? column : row} * stride + (by_columns ? row : column);
  }
};

/// Offsets and strides are multiples of 16 bytes, or of a row that is shorter, as Vulkan requires.
struct Steps {
  std::uint32_t offset, padding;  ///< in such units
};
constexpr std::array<Steps, 5> steps{Steps{0, 0}, Steps{1, 1}, Steps{3, 0}, Steps{7, 3}, Steps{16, 2}};

Place place_of(Component component, std::uint32_t rows, std::uint32_t columns, bool by_columns, const Steps& step) {
  const std::uint32_t line = by_columns ? rows : columns;
  const std::uint32_t unit = std::min(16 / bytes(component), line);
  return {step.offset * unit, (line + unit - 1) / unit * unit + step.padding * unit, by_columns};
}

/// The largest number of the factors, so that all sums are whole numbers that the result's type has.
double largest_factor(const MatrixProduct& product) {
  const double sums = 2.0 * product.k + 1;
  double largest = std::min({largest_whole(product.a), largest_whole(product.b), 127.0});
  const double most = std::min(largest_whole(product.c), largest_whole(product.result));
  while (largest > 1 && sums * largest * largest > most) --largest;
  return largest;
}

double whole(Component component, double largest, std::uint32_t& state) {
  const auto most = static_cast<std::uint32_t>(largest);
  const bool negative = !is_integer(component) || is_signed(component);
  const auto value = static_cast<double>(next_random(state) >> 8U);
  return negative ? std::fmod(value, 2 * most + 1) - most : std::fmod(value, most + 1);
}

/// One dispatch: where the matrices lie, what they are, and what must come out.
struct Run {
  MatrixPlaces places;
  std::array<Place, 6> at;  ///< of a, the second a, b, the second b, c and the result
  std::vector<Words> buffers;
  std::vector<std::pair<std::size_t, double>> want;  ///< elements of the result
};

Run run_of(const MatrixProduct& p, const MatrixLayouts& layouts, std::size_t turn) {
  const auto step = [&](std::size_t i) { return steps.at((turn + i) % steps.size()); };
  Place a = place_of(p.a, p.rows, p.k, layouts.a, step(0));
  Place b = place_of(p.b, p.k, p.columns, layouts.b, step(1));
  const Place c = place_of(p.c, p.rows, p.columns, layouts.c, step(2));
  const Place result = place_of(p.result, p.rows, p.columns, layouts.c, step(3));
  Place second_a = a;
  Place second_b = b;
  second_a.first += std::min(16 / bytes(p.a), layouts.a ? p.rows : p.k);
  second_b.first += 2 * std::min(16 / bytes(p.b), layouts.b ? p.k : p.columns);
  Run made{{a.first, second_a.first, b.first, second_b.first, c.first, result.first, a.stride, b.stride, c.stride,
            result.stride},
           {a, second_a, b, second_b, c, result},
           {},
           {}};
  const auto needed = [](const Place& place, std::uint32_t rows, std::uint32_t columns) {
    return std::max<std::size_t>(shared_elements, place.at(rows - 1, columns - 1) + 1);
  };
  Elements of_a(p.a, needed(second_a, p.rows, p.k));
  Elements of_b(p.b, needed(second_b, p.k, p.columns));
  Elements of_c(p.c, needed(c, p.rows, p.columns));
  const Elements of_result(p.result, needed(result, p.rows, p.columns));
  const double largest = largest_factor(p);
  std::uint32_t state = static_cast<std::uint32_t>(turn) * 71 + 5;
  const std::size_t products = has_two_products(p) ? 2 : 1;
  for (std::size_t i = 0; i < products; ++i) {
    for (std::uint32_t k = 0; k < p.k; ++k) {
      for (std::uint32_t row = 0; row < p.rows; ++row) of_a.set(made.at.at(i).at(row, k), whole(p.a, largest, state));
      for (std::uint32_t column = 0; column < p.columns; ++column)
        of_b.set(made.at.at(2 + i).at(k, column), whole(p.b, largest, state));
    }
  }
  for (std::uint32_t row = 0; row < p.rows; ++row) {
    for (std::uint32_t column = 0; column < p.columns; ++column) {
      const double start = whole(p.c, largest, state);
      of_c.set(c.at(row, column), start);
      double sum = start;
      for (std::size_t i = 0; i < products; ++i)
        for (std::uint32_t k = 0; k < p.k; ++k)
          sum += of_a.at(made.at.at(i).at(row, k)) * of_b.at(made.at.at(2 + i).at(k, column));
      made.want.emplace_back(result.at(row, column), sum);
    }
  }
  made.buffers = {of_a.words(), of_b.words(), of_c.words(), of_result.words()};
  return made;
}

/// What is wrong of a result, or an empty text.
std::string objection(const MatrixProduct& p, const Run& run, const Outcome& outcome) {
  if (!outcome.guards_intact) return "it wrote next to its buffers";
  const Elements got(p.result, outcome.buffers[3]);
  std::vector<bool> wanted(outcome.buffers[3].size() * 4 / bytes(p.result));
  std::size_t wrong = 0;
  std::string first;
  for (const auto& [at, want] : run.want) {
    wanted[at] = true;
    if (got.at(at) == want || wrong++ > 0) continue;
    first = fmt::format("element {} is {}, not {}", at, got.at(at), want);
  }
  if (wrong > 0) return fmt::format("{} of {} elements are wrong, first: {}", wrong, run.want.size(), first);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!wanted[i] && !got.is_poison(i)) return fmt::format("element {}, between its rows, was written", i);
  return {};
}

std::string text(const MatrixLayouts& layouts) {
  const auto one = [](bool by_columns) { return by_columns ? "columns" : "rows"; };
  return fmt::format("a by {}, b by {}, c by {}{}", one(layouts.a), one(layouts.b), one(layouts.c),
                     layouts.shared ? ", through shared memory" : "");
}

bool fits_shared(const MatrixProduct& p, const Run& run, vk::Context& context) {
  const std::uint32_t all = shared_elements * (bytes(p.a) + bytes(p.b) + bytes(p.c) + bytes(p.result));
  if (all > context.capabilities().limits.maxComputeSharedMemorySize) return false;
  const std::array components{p.a, p.b, p.c, p.result};
  for (std::size_t i = 0; i < 4; ++i)
    if (run.buffers[i].size() * 4 > shared_elements * bytes(components.at(i)) + 3) return false;
  return true;
}

void check_product(CaseReport& report, const MatrixDevice& device, const MatrixProduct& product) {
  const std::uint32_t size = device.context().target().subgroups.size;
  std::size_t runs = 0;
  for (std::uint32_t how = 0; how < 16; ++how) {
    const MatrixLayouts layouts{(how & 1U) != 0, (how & 2U) != 0, (how & 4U) != 0, (how & 8U) != 0};
    std::string kernel = fmt::format("matrix.{}.{}", name(product), how);
    std::ranges::replace(kernel, ' ', '_');
    replace_kernel(kernel, matrix_module(product, layouts));
    for (std::size_t turn = 0; turn < steps.size(); ++turn) {
      const Run one = run_of(product, layouts, turn + how);
      if (layouts.shared && !fits_shared(product, one, device.context())) continue;
      const Launch launch{kernel, {size}, plan::push_bytes(one.places), {0, 1, 2, 3}, {1, 1, 1}, false, "matrix"};
      const Outcome outcome = run({launch}, one.buffers, {device.context(), device.pipelines()});
      ++runs;
      const std::string wrong = objection(product, one, outcome);
      if (wrong.empty()) continue;
      const MatrixPlaces& at = one.places;
      add_fault(report,
                fmt::format("{}, {}, from elements {}, {}, {} and {} on, {}, {}, {} and {} from one row or column "
                            "to the next: {}",
                            name(product), text(layouts), at.a, at.b, at.c, at.result, at.a_stride, at.b_stride,
                            at.c_stride, at.result_stride, wrong));
      if (report.kernel.empty()) report.kernel = kernel;
      break;
    }
  }
  report.facts.push_back(fmt::format("{}: {} dispatches", name(product), runs));
}

using Wants = bool (*)(Component);

void check_products(CaseReport& report, Wants wants) {
  const MatrixDevice device;
  if (!device.missing().empty()) return set_missing(report, device.missing());
  if (device.context().target().subgroups.size == 0)
    return set_missing(report, "the device's subgroups are not known to have one size");
  std::size_t tested = 0;
  for (const MatrixProduct& product : device.products()) {
    if (!wants(product.a)) continue;
    if (const std::string lacks = device.lacks(product); !lacks.empty()) {
      report.facts.push_back(fmt::format("{} is not tested: {}", name(product), lacks));
      continue;
    }
    check_product(report, device, product);
    ++tested;
  }
  if (tested == 0 && report.verdict == Verdict::right) set_missing(report, "the device reports no such products");
}

Case case_of(const std::string& name, const std::string& what, Wants wants) {
  return {"matrix/" + name, what, Wanted::quick, [wants](CaseReport& report) { check_products(report, wants); }};
}

}  // namespace

std::vector<Case> matrix_cases() {
  const std::string how = "each layout, offset and stride, with and without shared memory";
  return {
      case_of("f16", "Matrix units: products of f16, " + how, [](Component c) { return c == Component::f16; }),
      case_of("bf16", "Matrix units: products of bf16, " + how, [](Component c) { return c == Component::bf16; }),
      case_of("float8", "Matrix units: products of floats of 8 bits, " + how, is_float8),
      case_of("integers", "Matrix units: products of integers, " + how,
              [](Component c) { return is_tested(c) && is_integer(c); }),
      case_of("others", "Matrix units: products of f32, and of types that have no kernels here",
              [](Component c) { return !is_tested(c) || c == Component::f32; }),
  };
}

}  // namespace halfstep::selftest
