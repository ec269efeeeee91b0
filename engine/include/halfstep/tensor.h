#pragma once

#include <halfstep/language.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace halfstep {

/// The element types a tensor can be stored in.
enum class DType : std::uint8_t { f32, f16, bf16, u32 };

/// "f32", "f16", "bf16" or "u32".
HALFSTEP_API std::string_view name(DType dtype);

/// Bytes of one element.
HALFSTEP_API std::int64_t bytes(DType dtype);

/// Whether it stands for real numbers.
HALFSTEP_API bool is_floating(DType dtype);

/// Whether it is floating and has fewer bits than the f32 that arithmetic is done in, so that results are rounded when
/// they are stored.
HALFSTEP_API bool is_narrow(DType dtype);

/// Extents, outermost first. Images are {batch, height, width, channels}. {} is a scalar.
using Shape = std::vector<std::int64_t>;

/// "{64, 28, 28, 1}".
HALFSTEP_API std::string to_string(const Shape& shape);

/// The number of elements of `shape` (1 for a scalar). Throws Error that names the shape if an extent is negative or
/// std::int64_t cannot hold the number.
HALFSTEP_API std::int64_t elements(const Shape& shape);

/// The type of a tensor, known before anything runs.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  friend bool operator==(const TensorType&, const TensorType&) = default;
};

/// "f16 {64, 10}".
HALFSTEP_API std::string to_string(const TensorType& type);

/// Values for one input of a graph, in the order of its shape, without padding.
using Values = std::variant<std::span<const float>, std::span<const std::uint32_t>>;

namespace graph {
struct Ir;
struct Access;
}  // namespace graph

/// A symbolic value of a graph: what an operator takes and returns. Cheap to copy. It shares ownership of the graph's
/// contents, so it may outlive the Graph.
class HALFSTEP_API Tensor {
 public:
  /// An undefined tensor, for members that are assigned later. Until then every member except defined(), id() and
  /// assignment throws Error, and so does every function that takes the tensor.
  Tensor() = default;

  /// Whether it is a value of a graph.
  bool defined() const { return ir_ != nullptr; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  std::int64_t rank() const { return static_cast<std::int64_t>(shape().size()); }
  /// Extent of axis `i`; a negative `i` counts from the end.
  std::int64_t dim(std::int64_t i) const;
  /// The name it was given, or one generated from its scope and operator.
  const std::string& name() const;

  /// Its index among the values of its graph.
  std::uint32_t id() const { return id_; }

 private:
  friend struct graph::Access;
  Tensor(std::shared_ptr<graph::Ir> ir, std::uint32_t id) : ir_(std::move(ir)), id_(id) {}

  std::shared_ptr<graph::Ir> ir_;
  std::uint32_t id_ = 0;
};

}  // namespace halfstep
