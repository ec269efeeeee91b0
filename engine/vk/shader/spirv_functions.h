#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace halfstep::vk {

/// What SPIR-V instructions compute with here.
enum class Scalar : std::uint8_t { boolean, i32, u32, f32 };

/// A scalar, or a vector of 2 to 4.
struct NumberType {
  Scalar scalar = Scalar::f32;
  std::uint32_t width = 1;

  auto operator<=>(const NumberType&) const = default;
};

class Code;

/// A value in a function that is being written, with GLSL's operators and functions. Both operands are of one type; a
/// number is converted to the other operand's.
class Number {
 public:
  Number(Code& code, NumberType type, std::uint32_t id) : code_(&code), type_(type), id_(id) {}

  Code& code() const { return *code_; }
  NumberType type() const { return type_; }
  std::uint32_t id() const { return id_; }

  Number operator[](std::uint32_t component) const;
  /// A constant of this type: of floats, the one that is nearest.
  Number same(double value) const { return constant(type_.scalar, value); }
  /// A constant of another type, as wide as this one.
  Number constant(Scalar scalar, double value) const;

 private:
  Code* code_;
  NumberType type_;
  std::uint32_t id_;
};

Number operator+(const Number& a, const Number& b);
Number operator-(const Number& a, const Number& b);
Number operator*(const Number& a, const Number& b);
Number operator/(const Number& a, const Number& b);  ///< of unsigned integers
Number operator<<(const Number& a, const Number& b);
Number operator>>(const Number& a, const Number& b);
Number operator&(const Number& a, const Number& b);  ///< of integers; of booleans, "and"
Number operator|(const Number& a, const Number& b);
Number operator^(const Number& a, const Number& b);
Number operator<(const Number& a, const Number& b);  ///< of floats, false with NaN
Number operator==(const Number& a, const Number& b);
Number operator!=(const Number& a, const Number& b);  ///< of integers
inline Number operator+(const Number& a, double b) {
  return a + a.same(b);
}
inline Number operator-(const Number& a, double b) {
  return a - a.same(b);
}
inline Number operator-(double a, const Number& b) {
  return b.same(a) - b;
}
inline Number operator*(const Number& a, double b) {
  return a * a.same(b);
}
inline Number operator<<(const Number& a, double b) {
  return a << a.same(b);
}
inline Number operator>>(const Number& a, double b) {
  return a >> a.same(b);
}
inline Number operator&(const Number& a, double b) {
  return a & a.same(b);
}
inline Number operator|(const Number& a, double b) {
  return a | a.same(b);
}
inline Number operator<(const Number& a, double b) {
  return a < a.same(b);
}
inline Number operator==(const Number& a, double b) {
  return a == a.same(b);
}
inline Number operator!=(const Number& a, double b) {
  return a != a.same(b);
}
/// `yes` where `condition` holds, else `no`.
Number select(const Number& condition, const Number& yes, const Number& no);
/// The same bits as another type.
Number bits_as(Scalar scalar, const Number& a);
/// The same number as another type; towards 0.
Number convert(Scalar scalar, const Number& a);
Number floor(const Number& a);
Number absolute(const Number& a);
/// A vector of its components.
Number vector_of(std::span<const Number> components);

/// A SPIR-V module to which functions on numbers are added. It keeps no reference to the words.
class FunctionWriter {
 public:
  /// Throws Error where these are not SPIR-V.
  explicit FunctionWriter(std::span<const std::uint32_t> words);

  /// Appends a function that returns what `body` makes of its arguments, in arithmetic that must not be contracted;
  /// returns its id.
  std::uint32_t function(std::span<const NumberType> arguments, NumberType result,
                         const std::function<Number(std::span<const Number>)>& body);
  /// The type of what has this type id; an empty width where it is none of these.
  NumberType type_of(std::uint32_t type) const;
  /// An id that nothing has.
  std::uint32_t next_id() { return bound_++; }
  /// The module with `body` as its instructions, from the first on, and with what was added.
  std::vector<std::uint32_t> finish(std::span<const std::uint32_t> body) const;

 private:
  friend class Code;

  /// This result must not be contracted: see NoContraction in the specification.
  void keep_exact(std::uint32_t result) { exact_.insert(result); }
  std::uint32_t type(NumberType wanted);
  std::uint32_t function_type(NumberType result, std::span<const NumberType> arguments);
  std::uint32_t constant(NumberType type, std::uint32_t bits);
  std::uint32_t instructions_of_glsl() const { return glsl_; }

  std::array<std::uint32_t, 5> header_{};
  std::uint32_t bound_ = 0;
  std::uint32_t glsl_ = 0;
  std::map<NumberType, std::uint32_t> types_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> function_types_;  ///< of the types' ids, the result's first
  std::map<std::pair<NumberType, std::uint32_t>, std::uint32_t> constants_;
  std::set<std::uint32_t> exact_;
  std::vector<std::uint32_t> declared_;
  std::vector<std::uint32_t> functions_;
};

}  // namespace halfstep::vk
