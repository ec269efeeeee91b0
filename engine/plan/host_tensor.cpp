#include "plan/host_tensor.h"

#include <cstring>

#include "graph/dtype.h"
#include "plan/layout.h"

namespace halfstep::plan {
namespace {

/// Calls visit(index in the shape's order, index in memory) for every element.
template <typename Visit>
void for_each_element(const TensorType& type, const Visit& visit) {
  const Layout lay = layout(type.shape);
  for (std::int64_t row = 0; row < lay.rows; ++row) {
    for (std::int64_t column = 0; column < lay.columns; ++column) {
      visit(static_cast<std::size_t>(row * lay.columns + column), static_cast<std::size_t>(row * lay.pitch + column));
    }
  }
}

template <typename Element>
void put(std::vector<std::byte>& memory, std::size_t index, Element element) {
  std::memcpy(memory.data() + index * sizeof(Element), &element, sizeof(Element));
}

template <typename Element>
Element take(std::span<const std::byte> memory, std::size_t index) {
  Element element;
  std::memcpy(&element, memory.data() + index * sizeof(Element), sizeof(Element));
  return element;
}

}  // namespace

std::vector<std::byte> to_memory(const TensorType& type, std::span<const float> values, Overflow overflow) {
  std::vector<std::byte> memory(byte_size(type));
  const graph::Narrow* narrow = graph::info(type.dtype).narrow;
  for_each_element(type, [&](std::size_t from, std::size_t to) {
    if (narrow != nullptr) {
      put(memory, to, graph::bits_of(*narrow, values[from], overflow));
    } else {
      put(memory, to, values[from]);
    }
  });
  return memory;
}

std::vector<std::byte> to_memory(const TensorType& type, std::span<const std::uint32_t> values) {
  std::vector<std::byte> memory(byte_size(type));
  for_each_element(type, [&](std::size_t from, std::size_t to) { put(memory, to, values[from]); });
  return memory;
}

std::vector<float> floats_from_memory(const TensorType& type, std::span<const std::byte> memory) {
  std::vector<float> values(static_cast<std::size_t>(elements(type.shape)));
  const graph::Narrow* narrow = graph::info(type.dtype).narrow;
  for_each_element(type, [&](std::size_t to, std::size_t from) {
    values[to] = narrow != nullptr ? narrow->value_of(take<std::uint16_t>(memory, from)) : take<float>(memory, from);
  });
  return values;
}

std::vector<std::uint32_t> words_from_memory(const TensorType& type, std::span<const std::byte> memory) {
  std::vector<std::uint32_t> values(static_cast<std::size_t>(elements(type.shape)));
  for_each_element(type, [&](std::size_t to, std::size_t from) { values[to] = take<std::uint32_t>(memory, from); });
  return values;
}

}  // namespace halfstep::plan
