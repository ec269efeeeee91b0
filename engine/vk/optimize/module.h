#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vk/optimize/instruction.h"

namespace halfstep::vk::ir {

/// A SPIR-V module. Passes may rely on what read() checks, and on no more: that all ids are defined, once, and where
/// they may be used from; that blocks end with a terminator; that every operand is there.
class Module {
 public:
  std::array<std::uint32_t, 5> header{};
  std::vector<Instruction> preamble{};  ///< capabilities, extensions, entry points, execution modes
  std::map<Id, std::vector<Instruction>> names{};
  std::map<Id, std::vector<Instruction>> decorations{};  ///< of each id
  std::vector<Function> functions{};

  /// Types, constants and variables, in order.
  const std::vector<Instruction>& globals() const { return globals_; }
  /// Takes all globals away, so that they are added again.
  std::vector<Instruction> take_globals();
  /// Adds one at the end.
  void append_global(Instruction i);
  /// Adds one at the end, but a constant only where there is none: constants that are equal and have no decorations are
  /// one: returns the id of that.
  Id add_global(Instruction i);
  /// The definition of a global, or null.
  const Instruction* global(Id id) const {
    return id < places_.size() && places_[id] != 0 ? &globals_[places_[id] - 1] : nullptr;
  }

  Id next_id() { return header[bound_word]++; }
  std::uint32_t bound() const { return header[bound_word]; }

  /// An integer of 32 bits, a float of 32 bits or a boolean.
  Id constant(Id type, std::uint32_t bits);
  Id composite(Id type, std::span<const Id> constituents);
  Id undefined(Id type);
  /// Types, which are made if there are none: an unsigned integer; a vector of booleans; a pointer in a function.
  Id type_u32();
  Id type_bools(std::uint32_t count);
  Id type_pointer(Id to);

  /// The bits of a constant that is a boolean, or of 32 bits.
  std::optional<std::uint32_t> bits(Id constant) const;
  bool is_constant(Id id) const;
  /// The opcode of the definition of a type; 0 if it is no global.
  std::uint32_t kind(Id type) const;
  /// Whether the type is an integer of 32 bits.
  bool is_int32(Id type) const;
  /// The type of the parts of a vector, array or matrix.
  Id part(Id type) const { return global(type)->operands[0]; }
  /// The number of parts of a vector, array, matrix or structure; nothing if that is no plain constant.
  std::optional<std::uint32_t> parts(Id type) const;
  /// The type of part `index`.
  Id part(Id type, std::uint32_t index) const;

  /// Gives `copy` what decorates `original`.
  void copy_decorations(Id original, Id copy);

 private:
  static constexpr std::size_t bound_word = 3;

  Id type(std::uint32_t opcode, std::vector<std::uint32_t> operands);

  std::vector<Instruction> globals_;
  std::vector<std::uint32_t> places_;  ///< of each id, one more than that among the globals
  std::map<std::pair<Id, std::vector<std::uint32_t>>, Id> constants_;  ///< by type, opcode and operands
};

/// The module of these words; nothing if they are none, or have anything that vk/shader/opcodes.def does not know.
std::optional<Module> read(std::span<const std::uint32_t> words);
/// The words of a module, its ids counted from 1 in the order in which they appear.
std::vector<std::uint32_t> write(const Module& module);

/// A map from ids to what takes their place.
class Replacements {
 public:
  /// `id` is `other` from now on.
  void add(Id id, Id other);
  Id operator()(Id id) const;
  bool empty() const { return others_.empty(); }
  /// In the operands of all instructions of the function.
  void apply(Function& function) const;

 private:
  mutable std::vector<Id> others_;
};

}  // namespace halfstep::vk::ir
