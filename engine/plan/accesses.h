#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plan/program.h"

namespace halfstep::plan {

/// Changes the dispatches of a program, and knows which of them access each tensor. Finding those anew for each
/// question would take time with the square of their number.
class Accesses {
 public:
  explicit Accesses(Program& program);

  /// The dispatches that read a tensor, or write it: their indices, in order.
  std::span<const std::size_t> readers(TensorId tensor) const { return of_[tensor].readers; }
  std::span<const std::size_t> writers(TensorId tensor) const { return of_[tensor].writers; }
  /// Whether a dispatch after `first` and before `last` must stay in order with what accesses `operand`.
  bool conflict_between(std::size_t first, std::size_t last, const Operand& operand) const;

  void replace(std::size_t at, Dispatch dispatch);
  /// Takes a dispatch out. Until `compact`, an empty one is left in its place, so that the others keep their indices.
  void remove(std::size_t at);
  void compact();

 private:
  struct Users {
    std::vector<std::size_t> readers;
    std::vector<std::size_t> writers;
  };

  void add_users(std::size_t at);
  void remove_users(std::size_t at);

  Program& program_;
  std::vector<Users> of_;
  std::vector<bool> removed_;
};

}  // namespace halfstep::plan
