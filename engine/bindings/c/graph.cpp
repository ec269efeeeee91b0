#include <halfstep/graph.h>

#include "c/handles.h"

namespace halfstep::c {

std::filesystem::path path_of(const char* given, const char* what) {
  const std::string utf8 = text(given, what);
  return std::filesystem::path(std::u8string(utf8.begin(), utf8.end()));
}

DType dtype_of(hs_dtype dtype) {
  switch (dtype) {
    case HS_F32:
      return DType::f32;
    case HS_F16:
      return DType::f16;
    case HS_BF16:
      return DType::bf16;
    case HS_U32:
      return DType::u32;
    case HS_DTYPE_DEFAULT:
    case HS_WIDEST:
      break;
  }
  fail("dtype", "expected HS_F32, HS_F16, HS_BF16 or HS_U32, got " + std::to_string(static_cast<int>(dtype)));
}

hs_dtype dtype_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return HS_F32;
    case DType::f16:
      return HS_F16;
    case DType::bf16:
      return HS_BF16;
    case DType::u32:
      return HS_U32;
  }
  return HS_DTYPE_DEFAULT;
}

Shape shape_of(const hs_shape& shape) {
  if (shape.rank < 0 || shape.rank > HS_MAX_RANK) {
    fail("shape", "expected a rank from 0 to " + std::to_string(HS_MAX_RANK) + ", got " + std::to_string(shape.rank));
  }
  return {shape.extent, shape.extent + shape.rank};
}

hs_shape shape_of(const Shape& shape) {
  if (shape.size() > HS_MAX_RANK) {
    fail(ErrorCode::unsupported, "shape",
         "expected at most " + std::to_string(HS_MAX_RANK) + " axes, got " + to_string(shape));
  }
  hs_shape result{};
  result.rank = static_cast<std::int64_t>(shape.size());
  std::ranges::copy(shape, result.extent);
  return result;
}

Initializer initializer_of(const hs_initializer& initializer) {
  constexpr std::array kinds{Initializer::Kind::constant, Initializer::Kind::uniform, Initializer::Kind::normal};
  if (initializer.kind >= kinds.size()) {
    fail("initializer", "expected a kind from 0 to 2, got " + std::to_string(initializer.kind),
         "hs_he and hs_glorot say of which tensor the fan is not positive");
  }
  return {kinds.at(initializer.kind), initializer.a, initializer.b};
}

Scope scope_of(Graph& graph, std::string_view path) {
  Scope scope = graph.root();
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    scope = scope / path.substr(begin, end - begin);
    begin = end + 1;
  }
  return scope;
}

void expect_sound(const hs_graph& graph) {
  if (graph.failure.status != HS_OK) throw Failure(graph.failure);
}

Tensor tensor_of(const hs_graph& graph, hs_tensor number) {
  expect_sound(graph);
  if (number == 0 || number > graph.tensors.size()) {
    fail("graph", "expected one of its " + std::to_string(graph.tensors.size()) + " tensors, got number " +
                      std::to_string(number));
  }
  return graph.tensors[number - 1];
}

std::optional<Tensor> optional_tensor_of(const hs_graph& graph, hs_tensor number) {
  return number == 0 ? std::nullopt : std::optional(tensor_of(graph, number));
}

namespace {

/// "layer1/conv" and "weight" of "layer1/conv/weight".
std::pair<std::string_view, std::string_view> divided(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

/// An initializer, or one of no kind where `make` throws, which the parameter that it is for then reports.
template <typename Make>
hs_initializer initializer(Make&& make) noexcept {
  hs_initializer result{UINT32_MAX, 0, 0};
  guarded([&] {
    const Initializer made = make();
    result = {static_cast<std::uint32_t>(made.kind), made.a, made.b};
  });
  return result;
}

}  // namespace
}  // namespace halfstep::c

using namespace halfstep;
using namespace halfstep::c;

hs_initializer hs_constant(float value) {
  return initializer([&] { return constant(value); });
}
hs_initializer hs_uniform(float low, float high) {
  return initializer([&] { return uniform(low, high); });
}
hs_initializer hs_normal(float mean, float stddev) {
  return initializer([&] { return normal(stddev, mean); });
}
hs_initializer hs_he(int64_t fan_in) {
  return initializer([&] { return he(fan_in); });
}
hs_initializer hs_glorot(int64_t fan_in, int64_t fan_out) {
  return initializer([&] { return glorot(fan_in, fan_out); });
}

hs_status hs_graph_create(hs_graph** graph) {
  return created(graph, [] { return new hs_graph; });
}

void hs_graph_free(hs_graph* graph) {
  delete graph;
}

hs_status hs_graph_status(const hs_graph* graph) {
  return guarded([&] { expect_sound(given(graph, "a graph")); });
}

int64_t hs_graph_parameter_count(const hs_graph* graph) {
  return graph == nullptr ? 0 : graph->graph->parameter_count();
}

hs_status hs_graph_text(const hs_graph* graph, char* buffer, size_t capacity, size_t* needed) {
  return guarded([&] { write_text(to_string(*given(graph, "a graph").graph), buffer, capacity, needed); });
}

hs_status hs_tensor_type(const hs_graph* graph, hs_tensor tensor, hs_dtype* dtype, hs_shape* shape) {
  return guarded([&] {
    const Tensor found = tensor_of(given(graph, "a graph"), tensor);
    const hs_shape found_shape = shape_of(found.shape());
    if (dtype != nullptr) *dtype = dtype_of(found.dtype());
    if (shape != nullptr) *shape = found_shape;
  });
}

hs_status hs_tensor_name(const hs_graph* graph, hs_tensor tensor, char* buffer, size_t capacity, size_t* needed) {
  return guarded([&] { write_text(tensor_of(given(graph, "a graph"), tensor).name(), buffer, capacity, needed); });
}

hs_tensor hs_input(hs_graph* graph, const char* name, hs_dtype dtype, hs_shape shape) {
  return added(graph,
               [&](hs_graph& g) { return g.graph->input(text(name, "a name"), shape_of(shape), dtype_of(dtype)); });
}

hs_tensor hs_parameter(hs_graph* graph, const char* path, hs_shape shape, hs_initializer initializer) {
  return hs_parameter_stored(graph, path, shape, initializer, {});
}

hs_tensor hs_parameter_stored(hs_graph* graph, const char* path, hs_shape shape, hs_initializer initializer,
                              hs_shape stored) {
  return added(graph, [&](hs_graph& g) {
    const std::string whole = text(path, "a path");
    const auto [scope, name] = divided(whole);
    return scope_of(*g.graph, scope).parameter(name, shape_of(shape), initializer_of(initializer), shape_of(stored));
  });
}

hs_tensor hs_state(hs_graph* graph, const char* path, hs_shape shape, hs_initializer initializer) {
  return added(graph, [&](hs_graph& g) {
    const std::string whole = text(path, "a path");
    const auto [scope, name] = divided(whole);
    return scope_of(*g.graph, scope).state(name, shape_of(shape), initializer_of(initializer));
  });
}

hs_tensor hs_cache(hs_graph* graph, const char* path, hs_shape shape) {
  return added(graph, [&](hs_graph& g) {
    const std::string whole = text(path, "a path");
    const auto [scope, name] = divided(whole);
    return scope_of(*g.graph, scope).cache(name, shape_of(shape));
  });
}

hs_status hs_update(hs_graph* graph, hs_tensor state, hs_tensor next) {
  const hs_status status = guarded([&] {
    const hs_graph& of = given(graph, "a graph");
    update(tensor_of(of, state), tensor_of(of, next));
  });
  if (status != HS_OK && graph != nullptr && graph->failure.status == HS_OK) graph->failure = last_failure();
  return status;
}
