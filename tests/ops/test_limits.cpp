// Sizes beyond the limits of drivers: 65,535 loop rounds in an invocation, 65,535 workgroups along an axis, the bytes
// of a binding. Each operator runs on all of its data and on parts of it, on the same device; where a limit cut off a
// loop of the whole, the two differ. Numbers are whole and sums exact, so that nothing else can make a difference.
// Extents that make loops longer than 65,535 rounds follow from the limit where HALFSTEP_LIMITS lowers it.
#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "harness/device.h"
#include "harness/values.h"
#include "ops/conv/conv2d.h"
#include "passes/backward.h"
#include "plan/layout.h"
#include "step/execution.h"

using namespace halfstep;
using reference::Array;

namespace {

/// How the results of parts are combined into that of the whole.
enum class Join : std::uint8_t {
  sum,   ///< added up
  mean,  ///< averaged
  rows,  ///< concatenated
};

struct Input {
  Array values;
  int axis = 0;  ///< the axis that is split; -1: each part has all of it
  bool labels = false;
};

struct Result {
  Join join = Join::sum;
  double factor = 1;  ///< multiplies a part's result
};

struct Case {
  std::string name;
  std::vector<Input> inputs;
  std::function<std::vector<Tensor>(std::span<const Tensor>)> build;
  std::vector<Result> results;
  double tolerance = 0;  ///< relative to the largest number of a result
  std::vector<DType> dtypes{DType::f32};
  std::int64_t parts = 4;
};

/// {outer, extent, inner} of an array about an axis.
struct Strides {
  std::size_t outer = 1, extent = 1, inner = 1;
};

Strides strides_of(const Shape& shape, int axis) {
  Strides strides;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    const auto extent = static_cast<std::size_t>(shape[static_cast<std::size_t>(i)]);
    (i < axis ? strides.outer : i == axis ? strides.extent : strides.inner) *= extent;
  }
  return strides;
}

Array part_of(const Input& input, std::int64_t part, std::int64_t parts) {
  if (input.axis < 0) return input.values;
  const Strides strides = strides_of(input.values.shape, input.axis);
  REQUIRE(strides.extent % static_cast<std::size_t>(parts) == 0);
  const std::size_t length = strides.extent / static_cast<std::size_t>(parts);
  Shape shape = input.values.shape;
  shape[static_cast<std::size_t>(input.axis)] = static_cast<std::int64_t>(length);
  Array cut(shape);
  for (std::size_t i = 0; i < strides.outer; ++i) {
    const std::size_t from = (i * strides.extent + static_cast<std::size_t>(part) * length) * strides.inner;
    std::copy_n(input.values.values.begin() + static_cast<std::ptrdiff_t>(from), length * strides.inner,
                cut.values.begin() + static_cast<std::ptrdiff_t>(i * length * strides.inner));
  }
  return cut;
}

std::vector<std::vector<float>> run(const Case& test, const std::vector<Array>& values, DType dtype,
                                    const plan::Target& target) {
  Graph graph = testing::settled_graph();
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const DType type = test.inputs[i].labels ? DType::u32 : values[i].shape.empty() ? DType::f32 : dtype;
    inputs.push_back(graph.input(fmt::format("x{}", i), values[i].shape, type));
  }
  std::vector<graph::ValueId> wanted;
  for (const Tensor& result : test.build(inputs)) wanted.push_back(result.id());
  step::ExecutionOptions options;
  options.target = target;
  step::Execution execution(testing::context(), graph.ir(), wanted, options);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::vector<double>& from = values[i].values;
    if (test.inputs[i].labels) {
      execution.set(inputs[i].id(), std::vector<std::uint32_t>(from.begin(), from.end()));
    } else {
      execution.set(inputs[i].id(), std::vector<float>(from.begin(), from.end()));
    }
  }
  execution.run();
  std::vector<std::vector<float>> results;
  for (const graph::ValueId value : wanted) results.push_back(execution.floats(value));
  return results;
}

/// The result of the whole, computed from the results of its parts.
std::vector<std::vector<double>> joined(const Case& test, DType dtype, const plan::Target& target) {
  std::vector<std::vector<double>> all(test.results.size());
  for (std::int64_t part = 0; part < test.parts; ++part) {
    std::vector<Array> values;
    for (const Input& input : test.inputs) values.push_back(part_of(input, part, test.parts));
    const std::vector<std::vector<float>> results = run(test, values, dtype, target);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Result& result = test.results[i];
      const double factor = result.factor / (result.join == Join::mean ? static_cast<double>(test.parts) : 1.0);
      if (result.join == Join::rows) {
        for (const float v : results[i]) all[i].push_back(factor * static_cast<double>(v));
        continue;
      }
      all[i].resize(results[i].size());
      for (std::size_t j = 0; j < results[i].size(); ++j) all[i][j] += factor * static_cast<double>(results[i][j]);
    }
  }
  return all;
}

void compare(const std::vector<float>& got, const std::vector<double>& want, double tolerance) {
  REQUIRE(got.size() == want.size());
  double largest = 0;
  for (const double v : want) largest = std::max(largest, std::abs(v));
  CHECK(largest > 0);
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::abs(static_cast<double>(got[i]) - want[i]) <= tolerance * largest) continue;
    if (wrong++ == 0) first = fmt::format("[{}] is {}, expected {}", i, got[i], want[i]);
  }
  CHECK_MESSAGE(wrong == 0, wrong << " of " << got.size() << " are wrong, first " << first);
}

/// Whether the device takes what a case does: of workgroups of 64, one for each quad of all inputs.
bool fits(const Case& test) {
  std::int64_t quads = 0;
  for (const Input& input : test.inputs) quads += plan::layout(input.values.shape).quads();
  const auto all = static_cast<std::uint64_t>(quads);
  return testing::device_takes(all / 64, 16 * all);
}

void check_parts(const Case& test) {
  if (!fits(test)) return;
  for (const plan::Target& target : testing::targets()) {
    for (const DType dtype : test.dtypes) {
      INFO(test.name << " in " << name(dtype) << (target.cpu ? ", for a CPU" : ", for a GPU"));
      std::vector<Array> values;
      for (const Input& input : test.inputs) values.push_back(input.values);
      const std::vector<std::vector<float>> got = run(test, values, dtype, target);
      const std::vector<std::vector<double>> want = joined(test, dtype, target);
      for (std::size_t i = 0; i < got.size(); ++i) {
        INFO("result " << i);
        compare(got[i], want[i], test.tolerance);
      }
    }
  }
}

/// An extent that makes a loop longer than the device's limit of rounds, from one that does for a limit of 65,535.
std::int64_t beyond(std::int64_t extent, std::int64_t least = 1) {
  constexpr std::int64_t usual = 65'535;
  const std::int64_t limit = std::min<std::int64_t>(testing::context().target().max_rounds, usual);
  return std::max(plan::divided_up(extent * limit, usual), least);
}

/// Whole numbers from -1 to 1.
Array signs(const Shape& shape, std::uint64_t seed) {
  Array array = testing::whole(shape, seed, 3);
  for (double& v : array.values) v -= 1;
  return array;
}

/// The gradient of the loss itself: the last input of a case that needs gradients.
Input one() {
  return {Array(Shape{}, 1.0), -1};
}

/// The gradients of `loss`, with `seed` as the gradient of the loss itself.
std::vector<Tensor> gradients(Tensor loss, Tensor seed, const std::vector<Tensor>& wanted) {
  std::vector<graph::ValueId> ids;
  for (const Tensor& tensor : wanted) ids.push_back(tensor.id());
  std::vector<Tensor> results;
  for (const graph::ValueId id : passes::add_backward(graph::ir_of(loss), loss.id(), seed.id(), ids))
    results.push_back(graph::ir_of(loss).tensor(id));
  return results;
}

Case weight_gradient(const std::string& name, const Shape& images, const Shape& weight, const Conv2dOptions& options) {
  const Shape output = ops::Convolution{images, weight, options}.output("test");
  return {.name = name,
          .inputs = {{signs(images, 1)}, {signs(output, 2)}},
          .build =
              [=](std::span<const Tensor> x) {
                const auto both = ops::conv2d_parameter_gradients(x[0], x[1], weight, options);
                return std::vector<Tensor>{both[0], both[1]};
              },
          .results = {{}, {}}};
}

}  // namespace

TEST_CASE("beyond the limits of drivers: gradients of convolutions' weights") {
  const std::int64_t batch = 4 * beyond(64);
  check_parts(weight_gradient("large batch", {batch, 32, 32, 16}, {3, 3, 16, 32}, {.padding = {1, 1}}));
  check_parts(weight_gradient("large images", {4 * beyond(2), 194, 194, 4}, {3, 3, 4, 8}, {}));
  check_parts(weight_gradient("strided, few channels", {batch, 33, 33, 3}, {3, 3, 3, 8}, {.stride = {2, 2}}));
  check_parts(weight_gradient("pointwise", {batch, 32, 32, 4}, {1, 1, 4, 8}, {}));
  check_parts(weight_gradient("groups off quads", {batch, 20, 20, 6}, {3, 1, 3, 6}, {.groups = 2}));
  check_parts(
      weight_gradient("depthwise", {4 * beyond(16), 64, 64, 4}, {3, 3, 1, 4}, {.padding = {1, 1}, .groups = 4}));
}

TEST_CASE("beyond the limits of drivers: products of long rows") {
  const std::int64_t k = 4 * beyond(67'500);
  for (const MatmulOptions& options : {MatmulOptions{}, {false, true}, {true, false}, {true, true}}) {
    check_parts({.name = fmt::format("matmul {} {}", options.transpose_a, options.transpose_b),
                 .inputs = {{signs(options.transpose_a ? Shape{k, 5} : Shape{5, k}, 1), options.transpose_a ? 0 : 1},
                            {signs(options.transpose_b ? Shape{7, k} : Shape{k, 7}, 2), options.transpose_b ? 1 : 0}},
                 .build = [=](std::span<const Tensor> x) { return std::vector<Tensor>{matmul(x[0], x[1], options)}; },
                 .results = {{}},
                 .dtypes = {DType::f32, DType::f16}});
  }
}

TEST_CASE("beyond the limits of drivers: grouped convolutions of many channels") {
  // 8 by 7 taps of 333 channels, four results of which are one invocation's; the parts have two rows of taps each. A
  // tap is not cut up.
  const std::int64_t channels = beyond(333, 3);
  const Conv2dOptions options{.groups = 2};
  check_parts({.name = "grouped",
               .inputs = {{signs({1, 8, 7, 2 * channels}, 1), 1}, {signs({8, 7, channels, 6}, 2), 0}, one()},
               .build =
                   [=](std::span<const Tensor> x) {
                     const Tensor y = conv2d(x[0], x[1], options);
                     return std::vector<Tensor>{y, gradients(sum(y), x.back(), {x[0]}).front()};
                   },
               .results = {{Join::sum}, {Join::rows}}});
}

TEST_CASE("beyond the limits of drivers: losses of many classes") {
  for (const std::int64_t classes : {beyond(131'072), beyond(151'936), beyond(300'001)}) {
    Array logits = testing::uniform({8, classes}, 1, -4, 4);
    Array labels = testing::whole({8}, 2, static_cast<std::uint32_t>(classes));
    // Half of the rows are classified correctly.
    for (std::size_t row = 0; row < 8; row += 2)
      logits.values[row * static_cast<std::size_t>(classes) + static_cast<std::size_t>(labels.values[row])] = 5;
    check_parts(
        {.name = fmt::format("{} classes", classes),
         .inputs = {{std::move(logits)}, {std::move(labels), 0, true}, one()},
         .build =
             [](std::span<const Tensor> x) {
               const Tensor loss = cross_entropy(x[0], x[1], 0.1F);
               return std::vector<Tensor>{loss, accuracy(x[0], x[1]), gradients(loss, x.back(), {x[0]}).front()};
             },
         .results = {{Join::mean}, {Join::mean}, {Join::rows, 1.0 / 4}},
         .tolerance = 1e-6});
  }
}

TEST_CASE("beyond the limits of drivers: cross-entropy of equal logits is the logarithm of their number") {
  const std::int64_t classes = beyond(151'936);
  const auto number = static_cast<double>(classes);
  const auto logits = static_cast<std::uint64_t>(2 * classes);
  if (!testing::device_takes(logits / 64, 4 * logits)) return;
  for (const plan::Target& target : testing::targets()) {
    const Case test{.name = "equal logits",
                    .inputs = {{Array({2, classes}, 0.0)}, {Array({2}, 7.0), 0, true}, one()},
                    .build =
                        [](std::span<const Tensor> x) {
                          const Tensor loss = cross_entropy(x[0], x[1]);
                          return std::vector<Tensor>{loss, gradients(loss, x.back(), {x[0]}).front()};
                        },
                    .results = {{}, {}}};
    const auto results =
        run(test, {test.inputs[0].values, test.inputs[1].values, test.inputs[2].values}, DType::f32, target);
    CHECK(static_cast<double>(results[0][0]) == doctest::Approx(std::log(number)).epsilon(1e-5));
    CHECK(static_cast<double>(results[1][7]) == doctest::Approx((1 / number - 1) / 2).epsilon(1e-6));
    CHECK(static_cast<double>(results[1].back()) == doctest::Approx(1 / number / 2).epsilon(1e-5));
  }
}

TEST_CASE("beyond the limits of drivers: losses of many rows") {
  check_parts({.name = "rows",
               .inputs = {{signs({4'400'000, 2}, 1)}, {testing::whole({4'400'000}, 2, 2), 0, true}, one()},
               .build =
                   [](std::span<const Tensor> x) {
                     const Tensor loss = cross_entropy(x[0], x[1]);
                     return std::vector<Tensor>{loss, accuracy(x[0], x[1]), gradients(loss, x.back(), {x[0]}).front()};
                   },
               .results = {{Join::mean}, {Join::mean}, {Join::rows, 1.0 / 4}},
               .tolerance = 1e-5});
  const std::int64_t pairs = 4 * beyond(250'000);
  check_parts({.name = "pairs",
               .inputs = {{signs({pairs, 1}, 1)}, {signs({pairs, 1}, 2)}, one()},
               .build =
                   [](std::span<const Tensor> x) {
                     const Tensor loss = mse_loss(x[0], x[1]);
                     return std::vector<Tensor>{loss, gradients(loss, x.back(), {x[0]}).front()};
                   },
               .results = {{Join::mean}, {Join::rows, 1.0 / 4}},
               .tolerance = 1e-6});
}

TEST_CASE("beyond the limits of drivers: norms of many images") {
  const std::int64_t images = 4 * beyond(16'500);
  check_parts({.name = "group norm",
               .inputs = {{signs({images, 3, 4}, 1)}, {signs({images, 3, 4}, 2)}, {Array({4}, 1.0), -1}, one()},
               .build =
                   [](std::span<const Tensor> x) {
                     const Tensor bias = scale(x[2], 0);
                     const Tensor y = group_norm(x[0], 2, x[2], bias);
                     const std::vector<Tensor> found = gradients(sum(mul(y, x[1])), x.back(), {x[2], bias});
                     return std::vector<Tensor>{y, found[0], found[1]};
                   },
               .results = {{Join::rows}, {}, {}},
               .tolerance = 1e-4});
}

TEST_CASE("beyond the limits of drivers: elementwise operators of more workgroups than an axis has") {
  // 4,400,000 quads: 68,750 workgroups of 64.
  check_parts({.name = "elementwise",
               .inputs = {{signs({4'400'000, 3}, 1)}, {signs({3}, 2), -1}},
               .build =
                   [](std::span<const Tensor> x) {
                     return std::vector<Tensor>{add(relu(x[0]), x[1]), slice(x[0], {0, 1}, {x[0].dim(0), 2})};
                   },
               .results = {{Join::rows}, {Join::rows}}});
  check_parts({.name = "concat and reshape",
               .inputs = {{signs({2'200'000, 3}, 1)}, {signs({2'200'000, 2}, 2)}},
               .build =
                   [](std::span<const Tensor> x) {
                     return std::vector<Tensor>{concat({x[0], x[1]}, 1), reshape(x[1], {x[1].dim(0) * 2, 1})};
                   },
               .results = {{Join::rows}, {Join::rows}}});
}

TEST_CASE("beyond the limits of drivers: windows of too many loop rounds and tensors of too many bytes are refused") {
  plan::Target limited = testing::context().target();
  limited.max_rounds = 65535;
  limited.max_storage_range = plan::Target{}.max_storage_range;
  limited.part_bytes = 0;
  const auto lowered = [&](const std::function<Tensor(Tensor)>& build, const Shape& images) {
    Graph graph;
    const Tensor x = graph.input("x", images);
    const Tensor y = build(x);
    step::ExecutionOptions options;
    options.target = limited;
    step::Execution(testing::context(), graph.ir(), {y.id()}, options);
  };
  const Pool2dOptions large{.kernel = {300, 300}};
  CHECK_THROWS_WITH_AS(lowered([&](Tensor x) { return max_pool2d(x, large); }, {1, 300, 300, 4}),
                       doctest::Contains("[max_pool2d] expected a kernel of at most 65535 loop rounds"), Error);
  CHECK_THROWS_WITH_AS(lowered([&](Tensor x) { return average_pool2d(x, large); }, {1, 300, 300, 4}),
                       doctest::Contains("[average_pool2d] expected a kernel of at most 65535 loop rounds"), Error);
  limited.max_storage_range = 200'000'000;
  limited.max_storage_buffers = 6;
  CHECK_THROWS_WITH_AS(
      lowered([&](Tensor x) { return relu(x); }, {31'000'000, 1}),
      doctest::Contains("[relu] expected at most 6 storage buffers, the device's limit, got 8: "
                        "'relu:0' f32 {31000000, 1} of 496000000 bytes takes 4, of 134217728 bytes each, and "
                        "268435456 bytes of it would fit"),
      Error);
  limited.max_storage_range = std::uint64_t{1} << 40;
  CHECK_THROWS_WITH_AS(lowered([&](Tensor x) { return relu(x); }, {536'870'912, 1}),
                       doctest::Contains("[relu] expected tensors of fewer than 2^31 elements, padding included, got "
                                         "'relu:0' f32 {536870912, 1} of 2147483648"),
                       Error);
  check_parts({.name = "the whole of large images",
               .inputs = {{signs({4, 300, 300, 4}, 1)}},
               .build = [](std::span<const Tensor> x) { return std::vector<Tensor>{global_average_pool(x[0])}; },
               .results = {{Join::rows}},
               .tolerance = 1e-6});
}
