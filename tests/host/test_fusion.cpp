#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "plan/fusion.h"
#include "plan/pointwise.h"

namespace halfstep {
namespace {

using plan::Access;
using plan::Expression;
using plan::TensorId;

constexpr std::uint32_t programs = 2000;
const Shape whole{3, 6};
/// Shapes that broadcast to the result's shape, which comes first.
const std::vector<Shape> shapes{whole, whole, whole, {6}, {3, 1}, {}};

/// A random program of elementwise dispatches, of casts, and of kernels before or after an expression, or without one,
/// some of which take f32 and a narrow type alike.
class RandomProgram {
 public:
  RandomProgram(std::uint32_t seed, const plan::Target& target) : random_(seed), builder_(target) {
    outside_ = builder_.buffer("outside");
    for (const Shape& shape : shapes) tensors_.push_back(place(shape));
    const std::uint32_t dispatches = 1 + below(24);
    for (std::uint32_t i = 0; i < dispatches; ++i) add();
  }

  plan::Program finish() { return builder_.finish(); }

 private:
  std::uint32_t below(std::uint32_t end) { return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random_); }
  bool one_in(std::uint32_t count) { return below(count) == 0; }

  TensorType type(const Shape& shape) { return {one_in(2) ? DType::f32 : narrow_, shape}; }

  TensorId place(const Shape& shape) { return builder_.place("outside", type(shape), {outside_, 256 * places_++}); }

  /// The tensor for a dispatch's result: usually in the arena.
  TensorId result(const Shape& shape) {
    TensorId made = 0;
    if (one_in(8)) {
      made = place(shape);
      if (one_in(3)) builder_.stores().scale(made, 1 + below(9));
    } else {
      made = builder_.tensor("arena", type(shape));
      if (one_in(8)) builder_.keep(made);
    }
    tensors_.push_back(made);
    return made;
  }

  /// One that a kernel for the dispatch's narrow type can be given.
  TensorId known() {
    for (int i = 0; i < 100; ++i) {
      const TensorId tensor = any_known();
      const DType dtype = builder_.info(tensor).type.dtype;
      if (!is_narrow(dtype) || dtype == narrow_) return tensor;
    }
    tensors_.push_back(place(whole));
    return tensors_.back();
  }

  TensorId any_known() {
    // The newest more often than the others, so that there are chains.
    const auto count = static_cast<std::uint32_t>(tensors_.size());
    return tensors_[one_in(2) ? count - 1 - below(std::min(count, 3U)) : below(count)];
  }

  void add_reads(Expression& expression, std::vector<plan::Operand>& operands) {
    for (std::uint32_t i = 1 + below(3); i > 0; --i) {
      const TensorId tensor = known();
      expression.reads.push_back(plan::reading(whole, builder_.info(tensor).type.shape));
      operands.push_back({tensor, Access::read});
    }
  }

  plan::Register any(const Expression& expression) {
    const auto reads = static_cast<std::uint32_t>(expression.reads.size());
    const std::uint32_t at = below(reads + static_cast<std::uint32_t>(expression.steps.size()) + 1);
    if (at < reads) return static_cast<plan::Register>(at);
    if (at > reads) return static_cast<plan::Register>(plan::first_step + at - reads - 1);
    return expression.kernel == Expression::Kernel::before ? plan::kernel_value : plan::Register{0};
  }

  void add_steps(Expression& expression) {
    for (std::uint32_t i = below(4); i > 0; --i) {
      const auto op = static_cast<plan::Op>(1 + below(9));
      expression.add({op, any(expression), any(expression), static_cast<float>(below(5))});
    }
    expression.value = any(expression);
  }

  void add() {
    plan::Dispatch dispatch;
    dispatch.label = "a/" + std::to_string(labels_++);
    dispatch.shader = dispatch.label;
    if (one_in(4)) narrow_ = narrow_ == DType::f16 ? DType::bf16 : DType::f16;
    builder_.stores().set(one_in(4) ? Rounding::stochastic : Rounding::nearest,
                          one_in(4) ? Overflow::saturate : Overflow::infinity);
    const std::uint32_t kind = below(10);
    dispatch.mixes = kind <= 2 && one_in(2);
    if (kind >= 8) {
      const TensorId from = known();
      Expression copy;
      copy.layout = plan::layout(whole);
      copy.reads = {plan::reading(whole, builder_.info(from).type.shape)};
      copy.value = 0;
      dispatch.operands = {{result(whole), Access::write}, {from, Access::read}};
      dispatch.expression = std::move(copy);
    } else if (kind == 0) {
      dispatch.operands = {{known(), Access::read}, {known(), one_in(3) ? Access::read_write : Access::read}};
      dispatch.operands.push_back({result(whole), Access::write});
    } else {
      Expression expression;
      expression.layout = plan::layout(whole);
      expression.storage = kind <= 3 ? narrow_ : DType::f32;
      std::vector<plan::Operand> reads;
      if (kind <= 2) {
        expression.kernel = Expression::Kernel::before;
        expression.result = 1;
        expression.first_argument = 2;
        dispatch.operands = {{known(), Access::read}};
      }
      if (kind == 3) expression.kernel = Expression::Kernel::after;
      if (!dispatch.mixes) {
        add_reads(expression, reads);
        add_steps(expression);
      }
      dispatch.operands.push_back({result(kind == 3 ? Shape{6} : whole), Access::write});
      if (dispatch.mixes) expression.storage = builder_.info(tensors_.back()).type.dtype;
      dispatch.operands.insert(dispatch.operands.end(), reads.begin(), reads.end());
      dispatch.expression = std::move(expression);
    }
    builder_.dispatch(std::move(dispatch));
  }

  std::mt19937 random_;
  plan::ProgramBuilder builder_;
  plan::BufferId outside_ = 0;
  std::uint64_t places_ = 0;
  std::uint32_t labels_ = 0;
  DType narrow_ = DType::f16;  ///< of the next dispatch
  std::vector<TensorId> tensors_;
};

/// Identifies a value by what it was computed from, and how.
using Meaning = std::size_t;

Meaning of(std::initializer_list<Meaning> parts) {
  Meaning meaning = 17;
  for (const Meaning part : parts) meaning = meaning * 1000003 + std::hash<Meaning>{}(part) + (meaning >> 29);
  return meaning;
}

/// Evaluates symbolically what a program leaves in its tensors.
class Reader {
 public:
  explicit Reader(const plan::Program& program) : program_(program) {
    for (TensorId t = 0; t < program.tensors.size(); ++t) memory_.push_back(t);
    for (const plan::Dispatch& dispatch : program.dispatches) run(dispatch);
  }

  Meaning operator[](TensorId tensor) const { return memory_[tensor]; }

 private:
  void run(const plan::Dispatch& dispatch) {
    const std::size_t own = dispatch.expression ? dispatch.expression->first_argument : dispatch.operands.size();
    Meaning kernel = std::hash<std::string>{}(dispatch.shader.substr(0, dispatch.shader.find('.')));
    for (std::size_t i = 0; i < own; ++i) {
      const plan::Operand& operand = dispatch.operands[i];
      if (operand.access != Access::write) kernel = of({kernel, memory_[operand.tensor]});
    }
    if (dispatch.expression) kernel = run(dispatch, *dispatch.expression, kernel);
    for (std::size_t i = 0; i < own; ++i) {
      if (dispatch.operands[i].access != Access::read) store(dispatch.operands[i].tensor, kernel, dispatch.storing);
    }
  }

  /// What storing in a narrow type makes of a value; at random it takes the stream, and scaled the scale.
  static Meaning rounded(Meaning value, DType dtype, const plan::Storing& storing) {
    return of({value, static_cast<Meaning>(dtype), storing.saturate,
               storing.stochastic ? 1 + Meaning{storing.streams[0]} : 0,
               storing.scaled ? Meaning{storing.scales[0]} : 0});
  }

  void store(TensorId tensor, Meaning value, const plan::Storing& storing) {
    const DType dtype = program_.tensors[tensor].type.dtype;
    memory_[tensor] = is_narrow(dtype) ? rounded(value, dtype, storing) : value;
  }

  /// The value that is stored as the result.
  Meaning run(const plan::Dispatch& dispatch, const Expression& expression, Meaning kernel) {
    std::map<plan::Register, Meaning> registers{{plan::kernel_value, kernel}};
    std::size_t operand = expression.first_argument;
    for (std::size_t i = 0; i < expression.reads.size(); ++i) {
      const plan::Reading& reading = expression.reads[i];
      const Meaning value = memory_[dispatch.operands[operand++].tensor];
      const bool alike = reading == plan::Reading{};
      registers[static_cast<plan::Register>(i)] =
          alike ? value : of({value, static_cast<Meaning>(reading.walk), reading.spread});
    }
    for (std::size_t i = 0; i < expression.steps.size(); ++i) {
      const plan::Step& step = expression.steps[i];
      registers[static_cast<plan::Register>(plan::first_step + i)] =
          step.op == plan::Op::stored ? rounded(registers.at(step.a), expression.storage,
                                                {.stochastic = false, .saturate = dispatch.storing.saturate})
                                      : of({static_cast<Meaning>(step.op), registers.at(step.a), registers.at(step.b),
                                            static_cast<Meaning>(step.constant)});
    }
    for (const plan::Register written : expression.writes) {
      const TensorId tensor = dispatch.operands[operand++].tensor;
      CHECK_FALSE((is_narrow(program_.tensors[tensor].type.dtype) &&
                   (dispatch.storing.stochastic || dispatch.storing.scaled)));  // that is the result's
      store(tensor, registers.at(written), dispatch.storing);
    }
    const Meaning value = registers.at(expression.value);
    return expression.kernel == Expression::Kernel::after ? of({kernel, value}) : value;
  }

  const plan::Program& program_;
  std::vector<Meaning> memory_;
};

plan::Target target(bool fusion) {
  plan::Target target;
  target.fusion = fusion;
  target.max_storage_buffers = 6;
  return target;
}

bool outlives(const plan::ProgramTensor& tensor) {
  return tensor.kept || tensor.region.buffer != plan::arena_buffer;
}

/// The tensors that dispatches read, or write.
std::set<TensorId> accessed(const plan::Program& program, bool written) {
  std::set<TensorId> tensors;
  for (const plan::Dispatch& dispatch : program.dispatches) {
    for (const plan::Operand& operand : dispatch.operands) {
      if (operand.access != (written ? Access::read : Access::write)) tensors.insert(operand.tensor);
    }
  }
  return tensors;
}

}  // namespace

TEST_CASE("a fused program means the same as an unfused one, and is shorter") {
  std::size_t before = 0;
  std::size_t after = 0;
  for (std::uint32_t seed = 0; seed < programs; ++seed) {
    CAPTURE(seed);
    const plan::Program unfused = RandomProgram(seed, target(false)).finish();
    const plan::Program fused = RandomProgram(seed, target(true)).finish();
    REQUIRE(fused.dispatches_unfused == unfused.dispatches.size());
    before += unfused.dispatches.size();
    after += fused.dispatches.size();
    const Reader wanted(unfused);
    const Reader got(fused);
    for (TensorId t = 0; t < unfused.tensors.size(); ++t) {
      if (outlives(unfused.tensors[t])) REQUIRE(got[t] == wanted[t]);
    }
  }
  CHECK(after * 10 < before * 8);
}

TEST_CASE("a value that fusion leaves without a reader is never stored") {
  for (std::uint32_t seed = 0; seed < programs; ++seed) {
    CAPTURE(seed);
    const std::set<TensorId> read_before = accessed(RandomProgram(seed, target(false)).finish(), false);
    const plan::Program fused = RandomProgram(seed, target(true)).finish();
    const std::set<TensorId> read = accessed(fused, false);
    for (const TensorId t : accessed(fused, true)) {
      REQUIRE((outlives(fused.tensors[t]) || read.contains(t) || !read_before.contains(t)));
    }
  }
}

TEST_CASE("a cast stays where what it reads is overwritten before its result is read") {
  const auto dispatches = [](bool overwritten) {
    plan::ProgramBuilder builder(target(true));
    const plan::BufferId outside = builder.buffer("outside");
    const TensorId result = builder.place("result", {DType::f32, whole}, {outside, 0});
    const TensorId narrow = builder.tensor("narrow", {DType::f16, whole});
    const TensorId wide = builder.tensor("wide", {DType::f32, whole});
    builder.dispatch(
        {.label = "first", .shader = "first", .constants = {}, .push = {}, .operands = {{narrow, Access::write}}});
    Expression copy;
    copy.layout = plan::layout(whole);
    copy.reads = {plan::Reading{}};
    copy.value = 0;
    builder.dispatch(plan::pointwise(std::move(copy), {{wide, Access::write}, {narrow, Access::read}}));
    if (overwritten)
      builder.dispatch(
          {.label = "next", .shader = "next", .constants = {}, .push = {}, .operands = {{narrow, Access::write}}});
    builder.dispatch({.label = "norm",
                      .shader = "norm.f32",
                      .constants = {},
                      .push = {},
                      .operands = {{wide, Access::read}, {result, Access::write}},
                      .mixes = true});
    return builder.finish().dispatches.size();
  };
  CHECK(dispatches(false) == 2);
  CHECK(dispatches(true) == 4);
}

TEST_CASE("fused dispatches stay within what a kernel and a device can take") {
  for (std::uint32_t seed = 0; seed < programs; ++seed) {
    const plan::Program fused = RandomProgram(seed, target(true)).finish();
    for (const plan::Dispatch& dispatch : fused.dispatches) {
      REQUIRE(dispatch.operands.size() <= 6);
      std::set<DType> narrow;
      for (const plan::Operand& operand : dispatch.operands) {
        if (is_narrow(fused.tensors[operand.tensor].type.dtype))
          narrow.insert(fused.tensors[operand.tensor].type.dtype);
      }
      if (dispatch.expression && is_narrow(dispatch.expression->storage)) narrow.insert(dispatch.expression->storage);
      REQUIRE(narrow.size() <= 1);
      if (!dispatch.expression) continue;
      REQUIRE(dispatch.expression->reads.size() + dispatch.expression->writes.size() <= plan::max_arguments);
      REQUIRE(dispatch.expression->steps.size() <= plan::max_steps);
      REQUIRE(dispatch.expression->terms() <= plan::max_terms);
    }
  }
}

TEST_CASE("how tensors are read that broadcast") {
  using plan::Walk;
  const auto walk = [](const Shape& to, const Shape& from) { return plan::reading(to, from).walk; };
  CHECK(plan::reading({3, 6}, {3, 6}) == plan::Reading{});
  CHECK(walk({3, 6}, {6}) == Walk::columns);
  CHECK(walk({2, 3, 8}, {1, 1, 8}) == Walk::columns);
  CHECK(walk({3, 8}, {3, 1}) == Walk::rows);
  CHECK(plan::reading({3, 8}, {3, 1}).spread);
  CHECK(walk({3, 6}, {}) == Walk::scalar);
  CHECK(walk({5, 3, 8}, {5, 1, 8}) == Walk::terms);
  const plan::Reading middle = plan::reading({5, 3, 7, 8}, {5, 1, 7, 1});
  CHECK(middle.terms == std::vector<plan::Term>{{2, 7, 1}, {42, 5, 7}});
  CHECK(middle.spread);
}

}  // namespace halfstep
