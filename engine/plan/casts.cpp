#include "plan/casts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "plan/accesses.h"
#include "plan/conflicts.h"
#include "plan/lowering.h"

namespace halfstep::plan {
namespace {

/// A dispatch that does nothing but cast.
struct Cast {
  std::size_t at = 0;
  TensorId from = 0;
  TensorId to = 0;
};

class Sparing {
 public:
  explicit Sparing(Program& program) : program_(program), accesses_(program) {}

  void run() {
    for (std::size_t i = 0; i < program_.dispatches.size(); ++i) {
      const std::optional<Cast> cast = cast_at(i);
      const bool spared = cast && (is_narrow(type(cast->from)) ? reads_before(*cast) : stores_after(*cast));
      if (spared) accesses_.remove(i);
    }
    accesses_.compact();
  }

 private:
  DType type(TensorId tensor) const { return program_.tensors[tensor].type.dtype; }

  std::optional<Cast> cast_at(std::size_t i) const {
    const Dispatch& dispatch = program_.dispatches[i];
    if (!dispatch.expression || dispatch.expression->kernel != Expression::Kernel::none) return std::nullopt;
    const Expression& expression = *dispatch.expression;
    const bool copies = expression.steps.empty() && expression.writes.empty() && expression.reads.size() == 1 &&
                        expression.reads[0] == Reading{} && expression.value == 0 && dispatch.operands.size() == 2;
    if (!copies) return std::nullopt;
    const Cast cast{i, dispatch.operands[1].tensor, dispatch.operands[0].tensor};
    const bool changes = is_narrow(type(cast.from)) != is_narrow(type(cast.to));
    return changes ? std::optional(cast) : std::nullopt;
  }

  /// Whether nobody but the program's own dispatches sees a tensor.
  bool is_inside(TensorId tensor) const {
    const ProgramTensor& known = program_.tensors[tensor];
    return !known.kept && known.region.buffer == arena_buffer;
  }

  /// Whether an operand may have any type: it is the kernel's own, of one that mixes, or read through the expression.
  static bool takes_any(const Dispatch& dispatch, std::size_t operand) {
    if (dispatch.operands[operand].texels || dispatch.operands[operand].address) return false;
    if (!dispatch.expression) return dispatch.mixes;
    const Expression& expression = *dispatch.expression;
    if (operand < expression.first_argument) return dispatch.mixes && operand != expression.result;
    return operand < expression.first_argument + expression.reads.size();
  }

  /// Whether the dispatch may take `to` in place of `from` wherever it has that: its kernel's variants know one narrow
  /// type.
  bool may_take(const Dispatch& dispatch, TensorId from, TensorId to) const {
    DType known = dispatch.expression ? dispatch.expression->storage : DType::f32;
    const bool fixed =
        dispatch.expression && dispatch.expression->kernel != Expression::Kernel::none && !dispatch.mixes;
    if (fixed && known != type(to)) return false;
    for (std::size_t i = 0; i < dispatch.operands.size(); ++i) {
      const bool replaced = dispatch.operands[i].tensor == from;
      if (replaced && !takes_any(dispatch, i)) return false;
      const DType own = type(replaced ? to : dispatch.operands[i].tensor);
      if (!is_narrow(own)) continue;
      if (is_narrow(known) && own != known) return false;
      known = own;
    }
    return true;
  }

  /// Lets all that read what was cast to f32 read what it was cast from; returns whether they can.
  bool reads_before(const Cast& cast) {
    const std::span found = accesses_.readers(cast.to);
    const std::vector<std::size_t> readers(found.begin(), found.end());
    if (!is_inside(cast.to) || accesses_.writers(cast.to).size() != 1 || readers.empty()) return false;
    const auto can_read = [&](std::size_t reader) {
      return reader > cast.at && may_take(program_.dispatches[reader], cast.to, cast.from);
    };
    if (!std::ranges::all_of(readers, can_read)) return false;
    if (accesses_.conflict_between(cast.at, readers.back(), {cast.from, Access::read})) return false;
    for (const std::size_t reader : readers) {
      accesses_.replace(reader, taking(program_.dispatches[reader], cast.to, cast.from));
    }
    return true;
  }

  /// Lets the kernel that stored what is cast to a narrow type store it so; returns whether it can.
  bool stores_after(const Cast& cast) {
    const std::span writers = accesses_.writers(cast.from);
    const bool only_cast = writers.size() == 1 && writers[0] < cast.at && accesses_.readers(cast.from).size() == 1;
    if (!is_inside(cast.from) || !only_cast) return false;
    const std::size_t writer = writers[0];
    const Dispatch& dispatch = program_.dispatches[writer];
    const std::optional<Storing> storing = common_storing(program_, dispatch, program_.dispatches[cast.at]);
    if (!dispatch.mixes || !storing || own_to_result(*storing)) return false;
    if (!may_take(dispatch, cast.from, cast.to)) return false;
    if (accesses_.conflict_between(writer, cast.at, {cast.to, Access::write})) return false;
    Dispatch storing_so = taking(dispatch, cast.from, cast.to);
    storing_so.storing = *storing;
    accesses_.replace(writer, std::move(storing_so));
    return true;
  }

  static Dispatch taking(Dispatch dispatch, TensorId from, TensorId to) {
    for (Operand& operand : dispatch.operands) {
      if (operand.tensor == from) operand.tensor = to;
    }
    return dispatch;
  }

  Program& program_;
  Accesses accesses_;
};

}  // namespace

void spare_casts(Program& program) {
  Sparing(program).run();
}

namespace {

/// Gives a dispatch its form of f32, where what that reads by address has one.
void take_form(const Program& program, const Target& target, Dispatch& dispatch) {
  const FormOfF32 form = *std::exchange(dispatch.of_f32, std::nullopt);
  const auto addressed = [&](std::size_t operand) { return (form.addressed >> operand & 1) != 0; };
  for (std::size_t i = 0; i < dispatch.operands.size(); ++i) {
    const std::uint64_t elements = program.tensors[dispatch.operands[i].tensor].bytes / sizeof(float);
    if (addressed(i) && !has_address(target, elements)) return;
  }
  for (std::size_t i = 0; i < dispatch.operands.size(); ++i) dispatch.operands[i].address = addressed(i);
  dispatch.shader = form.shader;
  dispatch.constants = form.constants;
  dispatch.groups = form.groups;
}

/// Gives a dispatch that mixes its variant for the type `narrow`, or for f32, and says which operands are f32.
void name_variant(const Program& program, const Target& target, DType narrow, Dispatch& dispatch) {
  constexpr std::size_t wide_operands = first_expression_constant - 1;  // of shaders/common/mixed_operands.glsl
  const std::string stem = dispatch.shader.substr(0, dispatch.shader.rfind('.'));
  dispatch.shader = fmt::format("{}.{}", stem, storage(target, narrow));
  std::uint32_t wide = 0;
  for (std::size_t i = 0; i < dispatch.operands.size() && is_narrow(narrow); ++i) {
    if (!is_narrow(program.tensors[dispatch.operands[i].tensor].type.dtype)) wide |= 1U << i;
  }
  dispatch.constants.resize(wide_operands + 1);
  dispatch.constants[wide_operands] = wide;
}

}  // namespace

void settle_variant(const Program& program, const Target& target, Dispatch& dispatch) {
  DType narrow = dispatch.expression ? dispatch.expression->storage : DType::f32;
  for (const Operand& operand : dispatch.operands) {
    const DType dtype = program.tensors[operand.tensor].type.dtype;
    if (is_narrow(dtype)) narrow = dtype;
  }
  if (dispatch.mixes) name_variant(program, target, narrow, dispatch);
  if (dispatch.of_f32 && !is_narrow(narrow)) take_form(program, target, dispatch);
}

}  // namespace halfstep::plan
