#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>

#include "host/random_program.h"
#include "plan/plan.h"
#include "plan/pointwise.h"

namespace halfstep {
namespace {

constexpr std::uint32_t programs = 1000;

bool share_bytes(const plan::ProgramTensor& a, const plan::ProgramTensor& b) {
  return a.region.buffer == b.region.buffer && a.region.offset < b.region.offset + b.bytes &&
         b.region.offset < a.region.offset + a.bytes;
}

bool writes(const plan::Operand& operand) {
  return operand.access != plan::Access::read;
}

/// Its operands, and what its stores also read: the key of the noise, the table of scales.
std::vector<plan::Operand> touched(const plan::Program& program, std::size_t dispatch) {
  std::vector<plan::Operand> operands = program.dispatches[dispatch].operands;
  const plan::Storing& storing = program.dispatches[dispatch].storing;
  if (storing.stochastic) operands.push_back({program.noise_key.value(), plan::Access::read});
  if (storing.scaled) operands.push_back({program.scales.value(), plan::Access::read});
  return operands;
}

/// Whether dispatches i < j of a program must not overlap in time: a brute-force check of every byte.
bool depend(const plan::Program& program, std::size_t i, std::size_t j) {
  for (const plan::Operand& a : touched(program, i)) {
    for (const plan::Operand& b : touched(program, j)) {
      if ((writes(a) || writes(b)) && share_bytes(program.tensors[a.tensor], program.tensors[b.tensor])) return true;
    }
  }
  return false;
}

/// A chain of kernels that cannot be fused, each with a cast of its result, which the next one reads.
plan::ProgramBuilder chain(std::size_t dispatches) {
  const Shape shape{3, 6};
  plan::ProgramBuilder builder{plan::Target{}};
  plan::TensorId wide = builder.tensor("first", {DType::f32, shape});
  for (std::size_t i = 0; i < dispatches; i += 2) {
    const plan::TensorId narrow = builder.tensor("narrow", {DType::f16, shape});
    builder.dispatch({.label = "kernel",
                      .shader = "kernel",
                      .constants = {},
                      .push = {},
                      .operands = {{wide, plan::Access::read}, {narrow, plan::Access::write}}});
    wide = builder.tensor("wide", {DType::f32, shape});
    plan::Expression same;
    same.layout = plan::layout(shape);
    same.reads = {plan::Reading{}};
    same.value = 0;
    builder.dispatch(plan::pointwise(std::move(same), {{wide, plan::Access::write}, {narrow, plan::Access::read}}));
  }
  return builder;
}

/// Results that do not depend on each other, then for each an operator that reads it and is fused with its own.
plan::ProgramBuilder wide(std::size_t dispatches) {
  const TensorType type{DType::f32, {3, 6}};
  plan::ProgramBuilder builder{plan::Target{}};
  const auto add = [&](plan::TensorId from) {
    const plan::TensorId to = builder.tensor("result", type);
    plan::Expression same;
    same.layout = plan::layout(type.shape);
    same.reads = {plan::Reading{}};
    same.value = 0;
    builder.dispatch(plan::pointwise(std::move(same), {{to, plan::Access::write}, {from, plan::Access::read}}));
    return to;
  };
  std::vector<plan::TensorId> results(dispatches);
  for (plan::TensorId& result : results) result = add(builder.tensor("input", type));
  for (const plan::TensorId result : results) add(result);
  return builder;
}

/// The least time of the processor that it takes to plan a program of so many dispatches when fused, of several.
std::clock_t planning_time(plan::ProgramBuilder (*program)(std::size_t), std::size_t dispatches) {
  std::clock_t least = 0;
  for (int i = 0; i < 5; ++i) {
    plan::ProgramBuilder builder = program(dispatches);
    const std::clock_t start = std::clock();
    const plan::Plan planned = plan::make_plan(builder.finish(), {});
    const std::clock_t taken = std::clock() - start;
    REQUIRE(planned.program.dispatches.size() == dispatches);
    least = i == 0 ? taken : std::min(least, taken);
  }
  return least;
}

}  // namespace

TEST_CASE("the time to plan a program grows with its dispatches, not with their square") {
  for (const auto program : {chain, wide}) {
    const auto few = static_cast<double>(planning_time(program, 2000));
    const auto many = static_cast<double>(planning_time(program, 8000));
    CHECK(many < 8 * few);
  }
}

TEST_CASE("tensors that are alive together never share a byte of the arena") {
  for (std::uint32_t seed = 0; seed < programs; ++seed) {
    plan::Program program = testing::random_program(seed);
    const plan::Arena arena = plan::plan_arena(program, {.alignment = 64});
    const std::vector<plan::Lifetime> alive = plan::lifetimes(program);
    for (std::size_t a = 0; a < program.tensors.size(); ++a) {
      const plan::ProgramTensor& first = program.tensors[a];
      if (first.region.buffer != plan::arena_buffer) continue;
      REQUIRE(first.region.offset % 64 == 0);
      REQUIRE(first.region.offset + first.bytes <= arena.bytes);
      for (std::size_t b = a + 1; b < program.tensors.size(); ++b) {
        REQUIRE_FALSE((alive[a].overlaps(alive[b]) && share_bytes(first, program.tensors[b])));
      }
    }
  }
}

TEST_CASE("in an arena in parts each tensor lies in one of them, and of a larger one each window") {
  constexpr std::uint64_t part = 1024;
  constexpr std::uint64_t window = 256;
  const auto in_one_part = [](std::uint64_t offset, std::uint64_t bytes) {
    return offset / part == (offset + bytes - 1) / part;
  };
  std::uint32_t larger = 0;
  for (std::uint32_t seed = 0; seed < programs; ++seed) {
    plan::Program program = testing::random_program(seed);
    plan::ArenaOptions options{.alignment = 16, .guard_bytes = seed % 2 * 16};
    options.part_bytes = part;
    options.window_bytes = window;
    plan::plan_arena(program, options);
    const std::vector<plan::Lifetime> alive = plan::lifetimes(program);
    for (std::size_t a = 0; a < program.tensors.size(); ++a) {
      const plan::ProgramTensor& tensor = program.tensors[a];
      if (tensor.region.buffer != plan::arena_buffer || !alive[a].used) continue;
      if (tensor.bytes <= part) REQUIRE(in_one_part(tensor.region.offset, tensor.bytes));
      larger += tensor.bytes > part ? 1 : 0;
      for (std::uint64_t done = 0; done < tensor.bytes; done += window) {
        const std::uint64_t bytes = std::min(window, tensor.bytes - done);
        if (tensor.bytes > part) REQUIRE(in_one_part(tensor.region.offset + done, bytes));
      }
      for (std::size_t b = a + 1; b < program.tensors.size(); ++b) {
        REQUIRE_FALSE((alive[a].overlaps(alive[b]) && share_bytes(tensor, program.tensors[b])));
      }
    }
  }
  CHECK(larger > 100);
}

TEST_CASE("the arena is at least what is alive at once, and reuse saves memory") {
  std::uint64_t shared = 0;
  std::uint64_t unshared = 0;
  for (std::uint32_t seed = 0; seed < programs; ++seed) {
    plan::Program program = testing::random_program(seed);
    const plan::Arena arena = plan::plan_arena(program, {.alignment = 16});
    const std::vector<plan::Lifetime> alive = plan::lifetimes(program);
    for (std::uint32_t i = 0; i < program.dispatches.size(); ++i) {
      std::uint64_t live = 0;
      for (std::size_t t = 0; t < program.tensors.size(); ++t) {
        const bool here = program.tensors[t].region.buffer == plan::arena_buffer;
        if (here && alive[t].overlaps({i, i, true})) live += program.tensors[t].bytes;
      }
      REQUIRE(arena.bytes >= live);
    }
    REQUIRE(arena.bytes <= arena.bytes_unshared);
    shared += arena.bytes;
    unshared += arena.bytes_unshared;
  }
  CHECK(shared < unshared * 7 / 10);
}

TEST_CASE("guards lie free between tensors, and without reuse none share memory") {
  plan::Program program = testing::random_program(7);
  plan::plan_arena(program, {.alignment = 64, .guard_bytes = 64, .reuse = false});
  const std::vector<plan::Lifetime> alive = plan::lifetimes(program);
  for (std::size_t a = 0; a < program.tensors.size(); ++a) {
    for (std::size_t b = a + 1; b < program.tensors.size(); ++b) {
      plan::ProgramTensor wide = program.tensors[a];
      if (wide.region.buffer != plan::arena_buffer || !alive[a].used || !alive[b].used) continue;
      REQUIRE(wide.region.offset >= 64);
      wide.region.offset -= 64;
      wide.bytes += 128;
      CHECK_FALSE(share_bytes(wide, program.tensors[b]));
    }
  }
}

TEST_CASE("every dependence has a barrier in between, and every barrier a dependence") {
  for (std::uint32_t seed = 0; seed < programs; ++seed) {
    plan::Program program = testing::random_program(seed);
    plan::plan_arena(program, {.alignment = 16});
    const std::vector<bool> barrier = plan::plan_barriers(program);
    std::size_t last = 0;  // the first dispatch since the last barrier
    for (std::size_t j = 0; j < program.dispatches.size(); ++j) {
      bool needed = false;
      for (std::size_t i = last; i < j; ++i) needed = needed || depend(program, i, j);
      REQUIRE(barrier[j] == needed);
      if (barrier[j]) last = j;
    }
  }
}

TEST_CASE("a tensor that is kept outlives the last dispatch") {
  plan::Program program;
  program.tensors = {{"kept", {}, 64, {}, true}, {"later", {}, 64, {}, false}};
  program.dispatches.resize(2);
  program.dispatches[0].operands = {{0, plan::Access::write}};
  program.dispatches[1].operands = {{1, plan::Access::write}};
  plan::plan_arena(program, {});
  CHECK_FALSE(share_bytes(program.tensors[0], program.tensors[1]));
}

}  // namespace halfstep
