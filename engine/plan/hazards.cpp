#include <algorithm>

#include "plan/memory_plan.h"

namespace halfstep::plan {
namespace {

struct Touched {
  BufferId buffer;
  std::uint64_t begin;
  std::uint64_t end;
  bool written;
};

Touched touched(const Program& program, const Operand& operand) {
  const ProgramTensor& tensor = program.tensors[operand.tensor];
  const std::uint64_t begin = tensor.region.offset;
  return {tensor.region.buffer, begin, begin + tensor.bytes, operand.access != Access::read};
}

bool conflict(const Touched& a, const Touched& b) {
  return (a.written || b.written) && a.buffer == b.buffer && a.begin < b.end && b.begin < a.end;
}

}  // namespace

std::vector<bool> plan_barriers(const Program& program) {
  std::vector<bool> before(program.dispatches.size(), false);
  std::vector<Touched> since_barrier;
  for (std::size_t i = 0; i < program.dispatches.size(); ++i) {
    std::vector<Touched> mine;
    const Dispatch& dispatch = program.dispatches[i];
    for (const Operand& operand : dispatch.operands) mine.push_back(touched(program, operand));
    if (dispatch.storing.stochastic && program.noise_key) {
      mine.push_back(touched(program, {*program.noise_key, Access::read}));
    }
    if (dispatch.storing.scaled && program.scales) mine.push_back(touched(program, {*program.scales, Access::read}));
    before[i] = std::ranges::any_of(mine, [&](const Touched& m) {
      return std::ranges::any_of(since_barrier, [&](const Touched& other) { return conflict(m, other); });
    });
    if (before[i]) since_barrier.clear();
    since_barrier.insert(since_barrier.end(), mine.begin(), mine.end());
  }
  return before;
}

}  // namespace halfstep::plan
