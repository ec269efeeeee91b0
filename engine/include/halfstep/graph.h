#pragma once

#include <halfstep/tensor.h>

#include <memory>
#include <string>
#include <string_view>

namespace halfstep {

namespace graph {
enum class Origin : std::uint8_t;
struct Access;
}  // namespace graph

/// How a parameter's initial values are drawn. Draws are keyed on (seed, the parameter's number among the graph's,
/// element). So they depend neither on the device nor on groups, but on the order in which parameters are created.
/// States have draws of their own. Scope::parameter and Scope::state throw Error unless the numbers are finite, a
/// uniform range ends no lower than it begins and is no wider than the largest f32, and a standard deviation is 0 or
/// more and leaves seven deviations from the mean finite.
struct Initializer {
  enum class Kind : std::uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  float a = 0;  ///< constant: the value. uniform: the lower bound. normal: the mean.
  float b = 0;  ///< uniform: the upper bound. normal: the standard deviation.
};

/// Every element is `value`.
HALFSTEP_API Initializer constant(float value);
/// Uniform from `low` to `high`.
HALFSTEP_API Initializer uniform(float low, float high);
/// Normal with the given mean and standard deviation.
HALFSTEP_API Initializer normal(float stddev, float mean = 0);
/// Normal with standard deviation sqrt(2 / fan_in): He et al. 2015, for layers followed by a ReLU. Throws Error unless
/// fan_in is positive.
HALFSTEP_API Initializer he(std::int64_t fan_in);
/// Uniform on +-sqrt(6 / (fan_in + fan_out)): Glorot and Bengio 2010. Throws Error unless both are positive.
HALFSTEP_API Initializer glorot(std::int64_t fan_in, std::int64_t fan_out);

/// Axes of a tensor, in some order.
using Axes = std::vector<std::int64_t>;

class Graph;

/// A level in a model's hierarchy of names: parameters created in it are called "outer/inner/name".
class HALFSTEP_API Scope {
 public:
  /// The scope `name` inside this one.
  Scope operator/(std::string_view name) const;
  /// Creates a trainable tensor named "path/name". In files it is called "path.name", and its axes are permuted to the
  /// order `stored`: {3, 2, 0, 1} gives PyTorch's layout of a convolution's weight. Empty keeps the order. Throws Error
  /// if that name is taken, an extent is not positive, there are more than 2^56 elements, or the initializer is none
  /// that Initializer allows. Names in files that begin with "halfstep." are refused where a trainer or predictor is
  /// compiled: its own tensors have these.
  Tensor parameter(std::string_view name, Shape shape, Initializer initializer, Axes stored = {}) const;
  /// Creates an f32 tensor named "path/name" that is kept from step to step and saved, but not trained. update()
  /// defines its next value. Throws as parameter() does.
  Tensor state(std::string_view name, Shape shape, Initializer initializer) const;
  /// Creates a tensor named "path/name", of zeros at first, that a Predictor keeps on the device from one run to the
  /// next: the keys and values of the tokens before, for instance. It is f32, or of the narrow type that the precision
  /// gives its only reader. It belongs to no file and no trainer. update() defines its next value, which every run
  /// assigns, and which must be the result of store_rows. Throws as parameter() does.
  Tensor cache(std::string_view name, Shape shape) const;
  const std::string& path() const { return path_; }

 private:
  friend class Graph;
  Tensor add(std::string_view name, Shape shape, Initializer initializer, graph::Origin origin, Axes stored) const;
  Scope(std::shared_ptr<graph::Ir> ir, std::string path) : ir_(std::move(ir)), path_(std::move(path)) {}
  std::shared_ptr<graph::Ir> ir_;
  std::string path_;
};

/// Assigns `next` to `state`, made by Scope::state, whenever the weights are updated: not in a step that is skipped
/// because a gradient overflowed, and not in evaluation. A `state` made by Scope::cache is assigned in every run of a
/// Predictor. Throws Error if `state` was made by neither, has an update already, or the types differ.
HALFSTEP_API void update(Tensor state, Tensor next);

/// A model: inputs, parameters and the operators between them. Building one does not use the GPU. Its tensors and
/// scopes share ownership of its contents and stay valid after the Graph is destroyed. Only one thread at a time may
/// build it. All members of a Graph or Scope that was moved from, and what takes them, throw Error.
class HALFSTEP_API Graph {
 public:
  Graph();
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Creates a tensor that is given new values in every step. Throws Error if the name is taken, an extent is not
  /// positive, or there are more than 2^56 elements.
  Tensor input(std::string_view name, Shape shape, DType dtype = DType::f32);
  /// The outermost scope.
  Scope root();
  /// The number of trainable scalars.
  std::int64_t parameter_count() const;

  const graph::Ir& ir() const;

 private:
  friend struct graph::Access;
  explicit Graph(std::shared_ptr<graph::Ir> ir);
  std::shared_ptr<graph::Ir> ir_;
};

/// One line for each input, parameter, state and operator, in order of creation, and for each update of a state: names,
/// types, initial values, and every attribute of every operator. Graphs with equal text compute the same.
HALFSTEP_API std::string to_string(const Graph& graph);
/// Whether two graphs have the same text.
HALFSTEP_API bool operator==(const Graph& a, const Graph& b);
/// A hash of the text, the same on every machine.
HALFSTEP_API std::uint64_t hash(const Graph& graph);

}  // namespace halfstep
