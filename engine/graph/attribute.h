#pragma once

#include <halfstep/tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace halfstep::graph {

/// The types of an attribute: the kinds of ONNX, and an element type.
using AttributeValue = std::variant<bool, std::int64_t, float, std::string, std::vector<std::int64_t>, DType>;

/// A number or text that an operator computes with, other than its inputs.
struct Attribute {
  std::string name;
  AttributeValue value;

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

using Attributes = std::vector<Attribute>;

/// "padding={1, 1}". Floats are written so that reading them back gives the same bits.
std::string text_of(const Attribute& attribute);

/// A pair of extents as an attribute's value.
inline std::vector<std::int64_t> list_of(const std::array<std::int64_t, 2>& pair) {
  return {pair.begin(), pair.end()};
}

}  // namespace halfstep::graph
