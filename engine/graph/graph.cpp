#include <halfstep/error.h>
#include <halfstep/graph.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/held.h"
#include "base/utf8.h"
#include "graph/ir.h"

namespace halfstep {
namespace {

void check_new(const graph::Ir& ir, std::string_view name, const Shape& shape) {
  if (name.empty()) fail("graph", "expected a name, got an empty one");
  // Checkpoints store names as JSON. Bytes that are replaced there would not be found again.
  if (const std::size_t valid = utf8_bytes(name); valid < name.size()) {
    fail("graph", fmt::format("expected a name in UTF-8, got another byte after '{}'", name.substr(0, valid)));
  }
  for (const graph::Value& value : ir.values) {
    if (value.name == name) {
      fail("graph", fmt::format("expected a new name, got '{}' a second time", name),
           "put each layer in a scope of its own");
    }
  }
  graph::check_extents("graph", fmt::format("'{}'", name), shape);
}

/// Throws Error unless `stored` is empty or a permutation of the axes of `shape`.
void check_order(std::string_view name, const Shape& shape, const Axes& stored) {
  if (stored.empty()) return;
  Axes axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (std::ranges::is_permutation(axes, stored)) return;
  fail("graph", fmt::format("expected every axis of {} once in the stored order of '{}', got {}", to_string(shape),
                            name, to_string(stored)));
}

/// More deviations from the mean than any normal value that is drawn from 32 bits: state/parameters.cpp.
constexpr float most_deviations = 7;

/// Throws Error unless `initializer` is as Initializer says.
void check_initializer(std::string_view name, const Initializer& initializer) {
  const auto [kind, a, b] = initializer;
  switch (kind) {
    case Initializer::Kind::constant:
      if (std::isfinite(a)) return;
      fail("graph", fmt::format("expected a finite initial value of '{}', got {}", name, a));
    case Initializer::Kind::uniform:
      if (a <= b && std::isfinite(b - a)) return;
      fail("graph", fmt::format("expected initial values of '{}' in a finite range, got {} to {}", name, a, b));
    case Initializer::Kind::normal:
      if (b >= 0 && std::isfinite(std::abs(a) + most_deviations * b)) return;
      fail("graph",
           fmt::format("expected a mean and a standard deviation of 0 or more for finite initial values of '{}', got "
                       "{} and {}",
                       name, a, b));
  }
}

}  // namespace

Initializer constant(float value) {
  return {Initializer::Kind::constant, value, 0};
}
Initializer uniform(float low, float high) {
  return {Initializer::Kind::uniform, low, high};
}
Initializer normal(float stddev, float mean) {
  return {Initializer::Kind::normal, mean, stddev};
}
Initializer he(std::int64_t fan_in) {
  if (fan_in < 1) fail("he", fmt::format("expected a positive fan_in, got {}", fan_in));
  return normal(std::sqrt(2.0F / static_cast<float>(fan_in)));
}
Initializer glorot(std::int64_t fan_in, std::int64_t fan_out) {
  if (fan_in < 1 || fan_out < 1) {
    fail("glorot", fmt::format("expected a positive fan_in and fan_out, got {} and {}", fan_in, fan_out));
  }
  const float bound = std::sqrt(6.0F / (static_cast<float>(fan_in) + static_cast<float>(fan_out)));
  return uniform(-bound, bound);
}

Scope Scope::operator/(std::string_view name) const {
  return {ir_, path_.empty() ? std::string(name) : fmt::format("{}/{}", path_, name)};
}

Tensor Scope::parameter(std::string_view name, Shape shape, Initializer initializer, Axes stored) const {
  return add(name, std::move(shape), initializer, graph::Origin::parameter, std::move(stored));
}

Tensor Scope::state(std::string_view name, Shape shape, Initializer initializer) const {
  return add(name, std::move(shape), initializer, graph::Origin::state, {});
}

Tensor Scope::cache(std::string_view name, Shape shape) const {
  return add(name, std::move(shape), constant(0), graph::Origin::cache, {});
}

Tensor Scope::add(std::string_view name, Shape shape, Initializer initializer, graph::Origin origin,
                  Axes stored) const {
  const Scope place = *this / name;
  graph::Ir& ir = held(ir_, "graph", "a scope of a graph");
  check_new(ir, place.path(), shape);
  check_order(place.path(), shape, stored);
  check_initializer(place.path(), initializer);
  graph::Value value;
  value.type = TensorType{DType::f32, std::move(shape)};
  value.name = place.path();
  value.origin = origin;
  value.initializer = initializer;
  value.stored = std::move(stored);
  return graph::Access::tensor(ir_, ir.add_value(std::move(value)));
}

void update(Tensor state, Tensor next) {
  graph::Ir& ir = graph::ir_of(state);
  const auto updated = [&](const graph::Update& other) { return other.state == state.id(); };
  const graph::Origin origin = ir.values[state.id()].origin;
  const bool kept = origin == graph::Origin::state || origin == graph::Origin::cache;
  if (!kept || &graph::ir_of(next) != &ir) {
    fail("update", fmt::format("expected a state or cache and a tensor of one graph, got '{}'", state.name()),
         "Scope::state and Scope::cache make them");
  }
  if (std::ranges::any_of(ir.updates, updated)) {
    fail("update", fmt::format("expected one update of '{}', got a second", state.name()),
         "give each layer a state of its own");
  }
  if (state.type() != next.type()) {
    fail("update",
         fmt::format("expected {} for '{}', got {}", to_string(state.type()), state.name(), to_string(next.type())));
  }
  ir.updates.push_back({state.id(), next.id()});
}

Graph::Graph() : Graph(std::make_shared<graph::Ir>()) {}
Graph::Graph(std::shared_ptr<graph::Ir> ir) : ir_(std::move(ir)) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Tensor Graph::input(std::string_view name, Shape shape, DType dtype) {
  graph::Ir& ir = held(ir_, "graph", "a graph");
  check_new(ir, name, shape);
  graph::Value value;
  value.type = TensorType{dtype, std::move(shape)};
  value.name = name;
  value.origin = graph::Origin::input;
  return graph::Access::tensor(ir_, ir.add_value(std::move(value)));
}

Scope Graph::root() {
  return {held(ir_, "graph", "a graph").shared_from_this(), ""};
}

std::int64_t Graph::parameter_count() const {
  std::int64_t count = 0;
  for (const graph::ValueId id : ir().of(graph::Origin::parameter)) count += elements(ir().values[id].type.shape);
  return count;
}

const graph::Ir& Graph::ir() const {
  return held(ir_, "graph", "a graph");
}

}  // namespace halfstep
