#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace halfstep::vk {

/// What a module declares, as far as rewriting its accesses to buffers needs it.
struct Declarations {
  explicit Declarations(std::span<const std::uint32_t> words);

  /// The type that pointers of a type point to.
  std::uint32_t pointee(std::uint32_t pointer_type) const { return types.at(pointer_type).at(2); }
  /// Whether values of a type are f16, or vectors of it, that the module may only load, store and convert.
  bool is_narrow(std::uint32_t type) const;

  /// The variable that is a built-in; 0 if there is none.
  std::uint32_t built_in(std::uint32_t number) const;
  /// From an element of an array type to the next; 0 if it says none.
  std::uint32_t stride(std::uint32_t array_type) const;
  /// The size of a type in a buffer, or a little more; nothing where it is not fixed.
  std::optional<std::uint64_t> bytes(std::uint32_t type) const;

  std::map<std::uint32_t, std::vector<std::uint32_t>> types;  ///< opcode and operands, without the id
  std::map<std::uint32_t, std::uint32_t> constants;           ///< value of 32-bit integers, not to be specialized
  std::map<std::uint32_t, std::uint32_t> globals;             ///< of constants of any kind: their type
  std::map<std::uint32_t, std::uint32_t> integers;            ///< of what is a 32-bit integer: its type
  std::map<std::uint32_t, std::uint32_t> variables;           ///< of those outside of functions: their type
  std::map<std::uint32_t, std::vector<std::vector<std::uint32_t>>> decorations;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> offsets;  ///< of members of structs
  bool float16_arithmetic = false;
  bool has_float64 = false;
};

/// Declarations, variables and functions that are added to a module.
class Additions {
 public:
  explicit Additions(std::span<const std::uint32_t> words);

  const Declarations& module() const { return module_; }
  /// An id that nothing has.
  std::uint32_t next_id() { return bound_++; }
  /// The id of a type, by its opcode and operands. Not for structs and arrays, of which two may be alike.
  std::uint32_t type(const std::vector<std::uint32_t>& declaration);
  /// The id of a block that is an array of elements of a type, `stride` bytes apart.
  std::uint32_t array_block(std::uint32_t element, std::uint32_t stride);
  /// Of a type of 32-bit integers.
  std::uint32_t constant(std::uint32_t type, std::uint32_t value);
  /// A variable at this binding of set 0.
  std::uint32_t variable(std::uint32_t pointer_type, std::uint32_t binding);
  /// The variable of this type that is a built-in input.
  std::uint32_t input(std::uint32_t type, std::uint32_t built_in);
  /// A variable like another, but at this binding.
  std::uint32_t variable_like(std::uint32_t variable, std::uint32_t binding);
  /// A variable like another, but of this type.
  std::uint32_t variable_of(std::uint32_t variable, std::uint32_t pointer_type);
  /// Where whole functions are appended.
  std::vector<std::uint32_t>& functions() { return functions_; }

  /// The module with `body` as its instructions, from the first on, and with what was added.
  std::vector<std::uint32_t> finish(std::span<const std::uint32_t> body) const;

 private:
  std::uint32_t copy_of(std::uint32_t variable, std::uint32_t pointer_type, std::optional<std::uint32_t> binding);

  Declarations module_;
  std::array<std::uint32_t, 5> header_{};
  std::uint32_t bound_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> types_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> constants_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> copies_;
  std::vector<std::uint32_t> resources_;           ///< variables that are no inputs
  std::map<std::uint32_t, std::uint32_t> blocks_;  ///< by the type of their elements
  std::map<std::uint32_t, std::uint32_t> inputs_;  ///< by the number of the built-in
  std::vector<std::uint32_t> decorations_;
  std::vector<std::uint32_t> declarations_;
  std::vector<std::uint32_t> functions_;
};

}  // namespace halfstep::vk
