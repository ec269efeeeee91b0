#include "plan/accesses.h"

#include <algorithm>
#include <utility>

#include "plan/conflicts.h"

namespace halfstep::plan {
namespace {

void insert(std::vector<std::size_t>& sorted, std::size_t at) {
  const auto place = std::ranges::lower_bound(sorted, at);
  if (place == sorted.end() || *place != at) sorted.insert(place, at);
}

void erase(std::vector<std::size_t>& sorted, std::size_t at) {
  const auto place = std::ranges::lower_bound(sorted, at);
  if (place != sorted.end() && *place == at) sorted.erase(place);
}

bool any_between(std::size_t first, std::size_t last, const std::vector<std::size_t>& sorted) {
  const auto next = std::ranges::upper_bound(sorted, first);
  return next != sorted.end() && *next < last;
}

}  // namespace

Accesses::Accesses(Program& program)
    : program_(program), of_(program.tensors.size()), removed_(program.dispatches.size(), false) {
  for (std::size_t i = 0; i < program.dispatches.size(); ++i) add_users(i);
}

bool Accesses::conflict_between(std::size_t first, std::size_t last, const Operand& operand) const {
  if (program_.tensors[operand.tensor].region.buffer == arena_buffer) {  // which it shares with no other tensor
    const Users& users = of_[operand.tensor];
    return any_between(first, last, users.writers) || (writes(operand) && any_between(first, last, users.readers));
  }
  for (std::size_t i = first + 1; i < last; ++i) {
    const auto meets = [&](const Operand& other) { return conflict(program_, other, operand); };
    if (std::ranges::any_of(program_.dispatches[i].operands, meets)) return true;
  }
  return false;
}

void Accesses::replace(std::size_t at, Dispatch dispatch) {
  remove_users(at);
  program_.dispatches[at] = std::move(dispatch);
  add_users(at);
}

void Accesses::remove(std::size_t at) {
  replace(at, {});
  removed_[at] = true;
}

void Accesses::compact() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < removed_.size(); ++i) {
    if (removed_[i]) continue;
    if (kept != i) program_.dispatches[kept] = std::move(program_.dispatches[i]);
    ++kept;
  }
  program_.dispatches.resize(kept);
}

void Accesses::add_users(std::size_t at) {
  for (const Operand& operand : program_.dispatches[at].operands) {
    if (operand.access != Access::write) insert(of_[operand.tensor].readers, at);
    if (writes(operand)) insert(of_[operand.tensor].writers, at);
  }
}

void Accesses::remove_users(std::size_t at) {
  for (const Operand& operand : program_.dispatches[at].operands) {
    erase(of_[operand.tensor].readers, at);
    erase(of_[operand.tensor].writers, at);
  }
}

}  // namespace halfstep::plan
