#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace halfstep::plan {
namespace {

std::string describe(const Program& program, const Operand& operand) {
  const ProgramTensor& tensor = program.tensors[operand.tensor];
  const char* mark = operand.access == Access::read ? "" : operand.access == Access::write ? "> " : "<> ";
  return fmt::format("{}{} {} @{}+{}", mark, tensor.name, to_string(tensor.type), program.buffers[tensor.region.buffer],
                     tensor.region.offset);
}

}  // namespace

std::uint64_t Plan::barriers() const {
  return static_cast<std::uint64_t>(std::ranges::count(barrier_before, true));
}

std::string Plan::text() const {
  std::string text =
      fmt::format("{} dispatches ({} without fusion), {} barriers, arena {} bytes ({} without reuse)\n",
                  program.dispatches.size(), program.dispatches_unfused, barriers(), arena.bytes, arena.bytes_unshared);
  for (std::size_t i = 0; i < program.dispatches.size(); ++i) {
    const Dispatch& dispatch = program.dispatches[i];
    fmt::format_to(std::back_inserter(text), "{}{:4} {}{} [{}] {}x{}x{}\n", barrier_before[i] ? "---- barrier\n" : "",
                   i, dispatch.label, dispatch.recomputed ? " (recomputed)" : "", dispatch.shader, dispatch.groups[0],
                   dispatch.groups[1], dispatch.groups[2]);
    for (const Operand& operand : dispatch.operands) {
      fmt::format_to(std::back_inserter(text), "         {}\n", describe(program, operand));
    }
  }
  return text;
}

Plan make_plan(Program program, const ArenaOptions& options) {
  Plan plan;
  plan.program = std::move(program);
  plan.arena = plan_arena(plan.program, options);
  plan.barrier_before = plan_barriers(plan.program);
  return plan;
}

}  // namespace halfstep::plan
