#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "vk/optimize/module.h"

namespace halfstep::vk::ir {

/// What a pointer points to in a variable that becomes values. A variable has a slot for each scalar, vector or matrix
/// in it.
struct Place {
  Id type = 0;                        ///< of what it points to
  std::uint32_t slot = 0;             ///< the first
  std::vector<std::uint32_t> path{};  ///< within the slot: a component of a vector, or of a column of a matrix
};

/// The variables of a function that may become values, and the pointers to them.
class Slots {
 public:
  Slots(Module& module, const Function& function);

  /// Null if it is no pointer into such a variable.
  const Place* place(Id pointer) const;
  bool is_promoted(Id variable) const { return variables_.contains(variable); }
  /// The values of the slots where the function begins; 0 if undefined.
  const std::vector<Id>& initial() const { return initial_; }
  const std::vector<Id>& types() const { return types_; }
  /// The number of slots of a type; nothing if it cannot be taken apart.
  std::optional<std::uint32_t> count(Id type) const;

 private:
  struct Variable {
    Id type = 0;
    Id initializer = 0;
  };

  void collect(const Function& function);
  void refuse_users(const Function& function);
  void refuse(Id pointer);
  bool visit_chain(const Instruction& i);
  void number();
  void add_slots(Id type, Id initializer);

  Module& module_;
  std::unordered_map<Id, Variable> variables_;
  std::vector<Id> in_order_;
  std::unordered_map<Id, Id> roots_;  ///< the variable of each pointer
  std::unordered_map<Id, Place> places_;
  std::vector<Id> initial_;
  std::vector<Id> types_;
};

}  // namespace halfstep::vk::ir
