#include "train/stored_values.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "graph/dtype.h"

namespace halfstep::train {
namespace {

template <typename Element>
Element element_at(Bytes data, std::size_t i) {
  Element element;
  std::memcpy(&element, data.data() + i * sizeof(Element), sizeof(Element));
  return element;
}

float number_at(const io::StoredTensor& tensor, std::size_t i) {
  if (tensor.dtype == "F32") return element_at<float>(tensor.data, i);
  return graph::find_saved(tensor.dtype)->narrow->value_of(element_at<std::uint16_t>(tensor.data, i));
}

/// Calls visit(index in the order of `shape`, index in the stored order) for every element.
template <typename Visit>
void for_each_element(const Shape& shape, const Axes& stored, const Visit& visit) {
  // How far a step along each axis of `shape` goes in the stored order.
  std::vector<std::size_t> strides(shape.size());
  std::size_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::size_t axis = stored.empty() ? i : static_cast<std::size_t>(stored[i]);
    strides[axis] = stride;
    stride *= static_cast<std::size_t>(shape[axis]);
  }
  std::vector<std::size_t> at(shape.size());
  std::size_t place = 0;
  for (std::size_t i = 0; i < stride; ++i) {
    visit(i, place);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      place += strides[axis];
      if (++at[axis] < static_cast<std::size_t>(shape[axis])) break;
      place -= strides[axis] * at[axis];
      at[axis] = 0;
    }
  }
}

}  // namespace

std::string stored_name(std::string_view name) {
  std::string stored(name);
  std::ranges::replace(stored, '/', '.');
  return stored;
}

void refuse_name(std::string_view who, std::string_view name) {
  fail(who, fmt::format("expected a name in files that nothing else has for '{}', got '{}'", name, stored_name(name)),
       fmt::format("there, '/' is '.', an optimizer's states and averages follow their weight's name, and what begins "
                   "with '{}' is Halfstep's own",
                   reserved_prefix));
}

Shape stored_shape(const Shape& shape, const Axes& stored) {
  if (stored.empty()) return shape;
  Shape result;
  for (const std::int64_t axis : stored) result.push_back(shape[static_cast<std::size_t>(axis)]);
  return result;
}

std::vector<std::byte> encode(DType dtype, const Shape& shape, const Axes& stored, std::span<const float> values) {
  std::vector<std::byte> encoded(values.size() * static_cast<std::size_t>(bytes(dtype)));
  const graph::Narrow* narrow = graph::info(dtype).narrow;
  for_each_element(shape, stored, [&](std::size_t from, std::size_t to) {
    if (narrow != nullptr) {
      const std::uint16_t bits = narrow->bits_of(values[from]);
      std::memcpy(encoded.data() + 2 * to, &bits, 2);
    } else {
      std::memcpy(encoded.data() + 4 * to, &values[from], 4);
    }
  });
  return encoded;
}

std::optional<std::string> mismatch(const io::StoredTensor& tensor, const Shape& shape, const Axes& stored) {
  const Shape wanted = stored_shape(shape, stored);
  const bool floating = tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16";
  if (floating && tensor.shape == wanted) return std::nullopt;
  return fmt::format("expected F32, F16 or BF16 {}, got {} {}", to_string(wanted), tensor.dtype,
                     to_string(tensor.shape));
}

std::vector<float> decode(const io::StoredTensor& tensor, const Shape& shape, const Axes& stored) {
  std::vector<float> values(static_cast<std::size_t>(elements(shape)));
  for_each_element(shape, stored, [&](std::size_t to, std::size_t from) { values[to] = number_at(tensor, from); });
  return values;
}

}  // namespace halfstep::train
