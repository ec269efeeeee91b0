#include "plan/expression.h"

#include <algorithm>
#include <bit>

namespace halfstep::plan {
namespace {

/// Whether the table numbers its primitives from 1 on without a gap.
consteval bool are_numbered_in_order() {
  int last = 0;
  bool in_order = true;
#define PRIMITIVE(number, name, arguments, result) in_order = in_order && (number) == ++last;
#include "plan/primitives.def"
#undef PRIMITIVE
  return in_order && last < 256;  // a step has eight bits for it
}
static_assert(are_numbered_in_order());

// As in expression.glsl.
constexpr std::uint32_t wide_bit = 16;
constexpr std::uint32_t spread_bit = 32;
constexpr std::uint32_t written_bit = 64;

std::uint32_t encoded(const Reading& reading, std::size_t first_term) {
  std::uint32_t word = static_cast<std::uint32_t>(reading.walk);
  if (reading.spread) word |= spread_bit;
  if (reading.walk == Walk::terms) {
    word |= static_cast<std::uint32_t>(first_term) << 8 | static_cast<std::uint32_t>(reading.terms.size()) << 12;
  }
  return word;
}

std::uint32_t encoded(const Step& step) {
  return static_cast<std::uint32_t>(step.op) | std::uint32_t{step.a} << 8 | std::uint32_t{step.b} << 16;
}

/// Adds an axis of `extent` outside those of `terms`; the operand advances by `stride` along it.
void append(std::vector<Term>& terms, std::int64_t divisor, std::int64_t extent, std::int64_t stride) {
  const Term term{static_cast<std::uint32_t>(divisor), static_cast<std::uint32_t>(extent),
                  static_cast<std::uint32_t>(stride)};
  if (!terms.empty()) {
    Term& inner = terms.back();
    if (inner.divisor * inner.extent == term.divisor && inner.extent * inner.stride == term.stride) {
      inner.extent *= term.extent;
      return;
    }
  }
  terms.push_back(term);
}

std::vector<Term> terms_of(const Shape& to, const Shape& from) {
  std::vector<Term> terms;
  std::int64_t divisor = 1;
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < to.size(); ++i) {  // from the last axis backwards
    const bool last = i == 0;
    const std::int64_t extent = last ? layout(to).quads_per_row() : to[to.size() - 1 - i];
    const std::int64_t own = i >= from.size() ? 1 : last ? layout(from).quads_per_row() : from[from.size() - 1 - i];
    if (own == extent && extent != 1) append(terms, divisor, extent, stride);
    divisor *= extent;
    stride *= own;
  }
  return terms;
}

Walk walk_of(const std::vector<Term>& terms, const Layout& to) {
  const auto row = static_cast<std::uint32_t>(to.quads_per_row());
  const auto rows = static_cast<std::uint32_t>(to.rows);
  if (terms.empty()) return Walk::scalar;
  if (terms == std::vector{Term{1, row, 1}}) return Walk::columns;
  if (terms == std::vector{Term{row, rows, 1}}) return Walk::rows;
  return Walk::terms;
}

/// The layout that the kernel is compiled for. If rows make no difference, all shapes share one kernel.
Layout seen_layout(const Expression& expression) {
  const bool unseen = expression.rows_known || ignores_rows(expression);
  return unseen ? Layout{.rows = 1, .columns = 4, .pitch = 4} : expression.layout;
}

}  // namespace

bool ignores_rows(const Expression& expression) {
  const auto ignores = [](const Reading& reading) {
    return reading.walk != Walk::columns && reading.walk != Walk::rows && !reading.spread;
  };
  return expression.layout.columns == expression.layout.pitch && std::ranges::all_of(expression.reads, ignores);
}

Reading reading(const Shape& to, const Shape& from) {
  Reading result;
  result.spread = layout(from).columns != layout(to).columns;
  if (layout(from).quads() == layout(to).quads()) return result;
  result.terms = terms_of(to, from);
  result.walk = walk_of(result.terms, layout(to));
  if (result.walk != Walk::terms) result.terms.clear();
  return result;
}

Register Expression::add(Step step) {
  steps.push_back(step);
  return static_cast<Register>(first_step + steps.size() - 1);
}

bool Expression::fits() const {
  return reads.size() + writes.size() <= max_arguments && steps.size() <= max_steps &&
         terms() <= (kernel == Kernel::none ? max_terms : 0);
}

bool Expression::rounds() const {
  return std::ranges::any_of(steps, [](const Step& step) { return step.op == Op::stored; });
}

std::size_t Expression::terms() const {
  std::size_t count = 0;
  for (const Reading& one : reads) count += one.terms.size();
  return count;
}

std::vector<std::uint32_t> expression_constants(const Expression& expression, const std::vector<bool>& wide) {
  const Layout rows = seen_layout(expression);
  std::vector<std::uint32_t> constants{static_cast<std::uint32_t>(rows.quads_per_row()),
                                       static_cast<std::uint32_t>(rows.columns), std::uint32_t{expression.value} << 8};
  std::size_t terms = 0;
  for (const Reading& one : expression.reads) {
    constants.push_back(encoded(one, terms));
    terms += one.terms.size();
  }
  for (const Register written : expression.writes) constants.push_back(written_bit | std::uint32_t{written} << 8);
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const std::size_t operand = i < 3 ? expression.result : expression.first_argument + i - 3;
    if (i >= 2 && wide[operand]) constants[i] |= wide_bit;
  }
  constants.resize(3 + max_arguments);
  for (const Step& step : expression.steps) {
    constants.push_back(encoded(step));
    constants.push_back(std::bit_cast<std::uint32_t>(step.constant));
  }
  return constants;
}

}  // namespace halfstep::plan
