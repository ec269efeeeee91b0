// Operators and their gradients on tensors that are larger than one binding: the same bits as where each is bound as a
// whole, on the same device.
#include <halfstep/device.h>
#include <halfstep/encodings.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/device.h"
#include "harness/values.h"
#include "passes/backward.h"
#include "step/execution.h"

using namespace halfstep;
using reference::Array;

namespace {

struct Input {
  Shape shape;
  std::uint32_t classes = 0;  ///< u32 below this, or 0: of the type that is tested
};

struct Case {
  std::string name;
  std::vector<Input> inputs;
  std::function<Tensor(std::span<const Tensor>)> build;
};

struct Run {
  std::vector<std::vector<std::byte>> results;  ///< and gradients
  std::size_t in_windows = 0;                   ///< dispatches
};

Run run(const Case& test, DType dtype, const plan::Target& target) {
  Graph graph = testing::settled_graph();
  std::vector<Tensor> inputs;
  std::vector<graph::ValueId> floating;
  for (const Input& input : test.inputs) {
    inputs.push_back(graph.input(fmt::format("x{}", inputs.size()), input.shape, input.classes ? DType::u32 : dtype));
    if (input.classes == 0) floating.push_back(inputs.back().id());
  }
  const Tensor y = test.build(inputs);
  const Tensor seed = graph.input("seed", y.type().shape, y.type().dtype);
  std::vector<graph::ValueId> wanted{y.id()};
  for (const graph::ValueId id : passes::add_backward(graph::ir_of(y), y.id(), seed.id(), floating))
    wanted.push_back(id);
  step::ExecutionOptions options;
  options.target = target;
  options.guard_bytes = 64;
  options.rounding = Rounding::stochastic;
  step::Execution execution(testing::context(), graph.ir(), wanted, options);
  const auto set = [&](Tensor tensor, std::uint32_t classes, std::uint64_t key) {
    const Shape& shape = tensor.type().shape;
    const Array values = classes != 0 ? testing::whole(shape, key, classes) : testing::uniform(shape, key);
    if (classes != 0) {
      execution.set(tensor.id(), std::vector<std::uint32_t>(values.values.begin(), values.values.end()));
    } else {
      execution.set(tensor.id(), std::vector<float>(values.values.begin(), values.values.end()));
    }
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) set(inputs[i], test.inputs[i].classes, i);
  set(seed, 0, 99);
  execution.run();
  Run made;
  for (const graph::ValueId value : wanted) made.results.push_back(execution.memory(value));
  CHECK(execution.guards_intact());
  for (const plan::Dispatch& dispatch : execution.plan().program.dispatches)
    made.in_windows += dispatch.windows.operands.empty() ? 0U : 1U;
  return made;
}

/// Compares what comes out with bindings of 4 KiB: most tensors of the cases take three or more. Kernels take longer to
/// compile than to run, so each case is in one type unless all variants are asked for.
void check(const Case& test, DType one = DType::f16) {
  const std::vector<DType> all{DType::f32, DType::f16, DType::bf16};
  for (const plan::Target& whole : testing::targets()) {
    plan::Target target = whole;
    target.max_storage_range = 5000;  // no power of two
    for (const DType dtype : testing::every_variant() ? all : std::vector{one}) {
      CAPTURE(test.name);
      CAPTURE(name(dtype));
      CAPTURE(whole.cpu);
      const Run want = run(test, dtype, whole);
      const Run got = run(test, dtype, target);
      CHECK(want.in_windows == 0);
      CHECK(got.in_windows >= 2);
      for (std::size_t i = 0; i < got.results.size(); ++i) {
        CAPTURE(i);
        CHECK(got.results[i] == want.results[i]);
      }
    }
  }
}

/// SwiftShader compiles kernels with many branches for minutes.
bool compiles_slowly() {
  const bool slow = testing::context().info().name.find("SwiftShader") != std::string::npos;
  return slow && !testing::every_variant();
}

using Tensors = std::span<const Tensor>;

}  // namespace

TEST_CASE("tensors larger than a binding: elementwise operators, sums and rows") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    check({"elementwise",
           {{{61, 83}}, {{83}}, {{61, 1}}},
           [](Tensors x) { return mul(add(gelu(x[0]), x[1]), sigmoid(dropout(sub(x[0], x[2]), 0.3F))); }},
          dtype);
  }
  check({"rows", {{{61, 83}}, {{83}}}, [](Tensors x) {
           return add(softmax(x[0]), mul(layer_norm(x[0], x[1]), rms_norm(transpose(transpose(x[0])))));
         }});
  check({"losses", {{{43, 101}}, {{43}, 101}}, [](Tensors x) { return cross_entropy(x[0], x[1], 0.1F); }}, DType::f32);
}

TEST_CASE("tensors larger than a binding: products and convolutions") {
  if (compiles_slowly()) return;
  check({"products", {{{67, 83}}, {{83, 77}}, {{71, 77}}, {{77}}}, [](Tensors x) {
           return matmul(linear(x[0], x[1], x[3]), x[2], {.transpose_b = true});
         }});
  check({"convolutions", {{{2, 11, 9, 15}}, {{3, 3, 15, 13}}, {{13}}}, [](Tensors x) {
           return max_pool2d(relu(conv2d(x[0], x[1], {.padding = {1, 1}}, x[2])),
                             {.kernel = {2, 2}, .stride = Pair{1, 1}});
         }});
  check({"channels by themselves", {{{2, 11, 9, 24}}, {{3, 3, 1, 24}}, {{24}}}, [](Tensors x) {
           return average_pool2d(bias(conv2d(x[0], x[1], {.groups = 24}), x[2]), {.kernel = {2, 3}});
         }});
}

TEST_CASE("tensors larger than a binding: norms of channels, lookups and moves") {
  check({"norms", {{{3, 11, 9, 16}}, {{16}}, {{16}}}, [](Tensors x) {
           return add(group_norm(x[0], 4, x[1], x[2]), instance_norm(x[0], x[1], x[2]));
         }});
  check({"lookups", {{{131, 33}}, {{57}, 131}}, [](Tensors x) { return embedding(x[0], x[1]); }});
  check({"moves", {{{7, 23, 31}}, {{7, 5, 31}}}, [](Tensors x) {
           const Tensor both = concat({permute(x[0], {2, 0, 1}), permute(x[1], {2, 0, 1})}, 2);
           return reshape(pad(slice(both, {1, 0, 3}, {31, 7, 28}), {0, 1, 0}, {2, 0, 0}), {-1});
         }});
}

TEST_CASE("tensors larger than a binding: attention") {
  if (compiles_slowly()) return;
  check({"attention", {{{2, 3, 29, 20}}, {{2, 3, 31, 20}}, {{2, 3, 31, 20}}}, [](Tensors x) {
           return attention(x[0], x[1], x[2], {.causal = true});
         }});
}

TEST_CASE("tensors larger than a binding: a hash grid, which is summed by atomics") {
  const HashGridOptions grid{.levels = 3, .log2_hashmap_size = 11, .base_resolution = 7, .per_level_scale = 2};
  check({"hash grid", {{{601, 2}}, {{hash_grid_size(2, grid)}}}, [&](Tensors x) {
           return hash_grid(cast(x[0], DType::f32), x[1], grid);
         }});
}

TEST_CASE("an arena of more than 4 GiB, of three tensors that are larger than a binding") {
  constexpr std::int64_t rows = 363'001;
  constexpr std::int64_t columns = 1000;
  if (!testing::every_variant() || testing::context().heap_bytes().free < std::uint64_t{8} << 30) return;
  Graph graph = testing::settled_graph();
  const Tensor a = graph.input("a", {rows, 1});
  const Tensor b = graph.input("b", {columns});
  const Tensor sums = add(a, b);
  const Tensor doubled = scale(sums, 2);
  const Tensor turned = scale(doubled, -3);
  step::Execution execution(testing::context(), graph.ir(), {sums.id(), doubled.id(), turned.id()});
  CHECK(execution.buffers()[0]->bytes() > std::uint64_t{1} << 32);
  std::vector<float> of_rows(rows);
  std::vector<float> of_columns(columns);
  for (std::size_t i = 0; i < of_rows.size(); ++i) of_rows[i] = static_cast<float>(i % 8191);
  for (std::size_t i = 0; i < of_columns.size(); ++i) of_columns[i] = static_cast<float>(i * i % 127);
  execution.set(a.id(), of_rows);
  execution.set(b.id(), of_columns);
  execution.run();
  for (const auto& [result, factor] : {std::pair(sums, 1.0F), {doubled, 2.0F}, {turned, -6.0F}}) {
    const std::vector<float> got = execution.floats(result.id());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      wrong += got[i] == factor * (of_rows[i / columns] + of_columns[i % columns]) ? 0U : 1U;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a tensor of more than 4 GiB: an elementwise operator, a sum and a product of it") {
  constexpr std::int64_t rows = 1'100'003;
  constexpr std::int64_t columns = 1000;
  plan::Target target = testing::context().target();
  target.fusion = false;  // so that the tensor is stored
  const bool can = target.max_storage_buffers > 100 && testing::context().heap_bytes().free > std::uint64_t{6} << 30;
  if (!testing::every_variant() || !can) return;
  Graph graph = testing::settled_graph();
  const Tensor a = graph.input("a", {rows, 1});
  const Tensor b = graph.input("b", {columns});
  const Tensor w = graph.input("w", {columns, 4});
  const Tensor large = add(a, b);
  const Tensor sums = sum(large, {-1});
  const Tensor product = matmul(large, w);
  step::ExecutionOptions options;
  options.target = target;
  step::Execution execution(testing::context(), graph.ir(), {sums.id(), product.id()}, options);
  CHECK(execution.buffers()[0]->bytes() > std::uint64_t{1} << 32);
  // Whole numbers, so that sums are exact.
  std::vector<std::vector<float>> values;
  for (const Tensor& input : {a, b, w}) {
    const Array whole = testing::whole(input.type().shape, values.size(), 7);
    values.emplace_back(whole.values.begin(), whole.values.end());
    execution.set(input.id(), values.back());
  }
  execution.run();
  const std::vector<float> got_sums = execution.floats(sums.id());
  const std::vector<float> got_product = execution.floats(product.id());
  double of_b = 0;
  std::array<double, 4> of_w{};
  std::array<double, 4> of_both{};
  for (std::size_t j = 0; j < columns; ++j) {
    of_b += static_cast<double>(values[1][j]);
    for (std::size_t c = 0; c < 4; ++c) {
      of_w[c] += static_cast<double>(values[2][4 * j + c]);
      of_both[c] += static_cast<double>(values[1][j] * values[2][4 * j + c]);
    }
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto own = static_cast<double>(values[0][i]);
    wrong += static_cast<double>(got_sums[i]) == own * columns + of_b ? 0U : 1U;
    for (std::size_t c = 0; c < 4; ++c)
      wrong += static_cast<double>(got_product[4 * i + c]) == own * of_w[c] + of_both[c] ? 0U : 1U;
  }
  CHECK(wrong == 0);
}

TEST_CASE("inputs lie in as many buffers as the device's largest asks for") {
  const Device small = Device::open({}, {.limits = "buffer_bytes=147456"});  // in parts of 131072
  Graph graph = testing::settled_graph();
  const Shape shape{100, 256};  // 102400 bytes
  const Shape high{301, 256};   // three parts
  const Tensor a = graph.input("a", shape), b = graph.input("b", shape), c = graph.input("c", high);
  const Tensor sum = add(a, b), scaled = scale(c, 2);
  step::ExecutionOptions options;
  options.guard_bytes = 64;
  step::Execution execution(vk::context_of(small), graph.ir(), {sum.id(), scaled.id()}, options);
  const auto set = [&](Tensor tensor, std::uint64_t key) {
    const Array values = testing::whole(tensor.type().shape, key, 1000);
    const std::vector<float> floats(values.values.begin(), values.values.end());
    execution.set(tensor.id(), floats);
    return floats;
  };
  std::vector<float> want = set(a, 1), twice = set(c, 3);
  std::ranges::transform(want, set(b, 2), want.begin(), std::plus{});
  for (float& value : twice) value *= 2;
  execution.run();
  CHECK(execution.floats(sum.id()) == want);
  CHECK(execution.floats(scaled.id()) == twice);
  CHECK(execution.guards_intact());
}
