#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "graph/dtype.h"
#include "graph/ir.h"
#include "harness/device.h"
#include "harness/values.h"
#include "ops/conv/conv2d.h"
#include "ops/gemm/gemm_kernels.h"
#include "step/execution.h"

using namespace halfstep;

namespace {

/// One operator's results, with accumulators in f16 or f32, for a target.
std::vector<float> results(Tensor output, const std::vector<std::pair<Tensor, std::vector<float>>>& inputs,
                           bool float16_partials, const plan::Target& target, Rounding rounding = Rounding::nearest) {
  step::ExecutionOptions options;
  options.rounding = rounding;
  const DType partials = float16_partials ? DType::f16 : DType::f32;
  options.lowering.partials = {partials, partials};
  options.target = target;
  step::Execution execution(testing::context(), graph::ir_of(output), {output.id()}, options);
  for (const auto& [tensor, values] : inputs) execution.set(tensor.id(), values);
  execution.run();
  return execution.floats(output.id());
}

/// The sum 1024 + 0.5 + 1024 + 1, each term a sum of sixteen products: 2049.5 in f32. In f16 it is 2048, also where k
/// is cut into parts: what is added to 1024 or 2048 is half of what follows it, which rounds to the even one.
std::vector<float> terms(std::int64_t copies) {
  constexpr std::array<float, 4> each{64, 0.03125F, 64, 0.0625F};
  std::vector<float> values;
  for (std::size_t k = 0; k < 64; ++k) values.insert(values.end(), static_cast<std::size_t>(copies), each[k / 16]);
  return values;
}

/// `sum` is the one in f32, which products of other types than f16 have in any case.
void check_partials(Tensor output, const std::vector<std::pair<Tensor, std::vector<float>>>& inputs,
                    float sum = 2049.5F) {
  const float in_f32 = graph::stored(output.dtype(), sum);
  for (const plan::Target& target : testing::product_targets()) {
    CHECK(results(output, inputs, false, target).front() == in_f32);
    CHECK(results(output, inputs, true, target).front() == (output.dtype() == DType::f16 ? 2048 : in_f32));
  }
}

std::vector<float> ones(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count), 1.0F);
}

/// -1, 0 and 1, whose products and short sums f16 has exactly.
std::vector<float> whole(const Shape& shape, std::uint64_t seed) {
  std::vector<float> values;
  for (const double value : testing::whole(shape, seed, 3).values) values.push_back(static_cast<float>(value) - 1);
  return values;
}

/// Compares a product of whole numbers, computed by each kernel that multiplies f16 as it is, with that by a driver's
/// first. Compiling the kernels takes nearly all of the time: unless every variant is wanted, one product is computed
/// by every third of them, and the next, `number` one larger, by those after these.
void check_halves(std::size_t number, const Shape& a_shape, const Shape& b_shape,
                  const std::function<Tensor(Tensor, Tensor)>& product) {
  Graph graph;
  const Tensor a = graph.input("a", a_shape, DType::f16);
  const Tensor b = graph.input("b", b_shape, DType::f16);
  const Tensor output = product(a, b);
  CAPTURE(to_string(output.shape()));
  for (plan::Target target : testing::product_targets()) {
    const std::vector<float> wanted = results(output, {{a, whole(a_shape, 1)}, {b, whole(b_shape, 2)}}, false, target);
    target.float16.dots = !target.cpu;  // drivers without the instruction compute what it means
    for (const bool halves : {false, true}) {
      target.gemm_kernels.clear();
      std::size_t place = number;
      for (const auto& kernel : ops::gemm_kernels(target, {.dtype = DType::f16, .float16_partials = halves})) {
        if (!kernel.name.starts_with(halves ? "half" : "dots")) continue;
        if (place++ % 3 != 0 && !testing::every_variant()) continue;
        CAPTURE(kernel.name);
        target.gemm_kernels = kernel.name;
        CHECK(results(output, {{a, whole(a_shape, 1)}, {b, whole(b_shape, 2)}}, halves, target) == wanted);
      }
    }
  }
}

}  // namespace

TEST_CASE("matmul can accumulate in f16, sixteen products at a time") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    Graph graph;
    const Tensor a = graph.input("a", {3, 64}, dtype);
    const Tensor b = graph.input("b", {64, 2}, dtype);
    check_partials(matmul(a, b), {{a, ones(3 * 64)}, {b, terms(2)}});
  }
}

TEST_CASE("every kernel that multiplies f16 as it is computes products and convolutions") {
  // Extents cross the edges of every tile.
  std::size_t number = 0;
  for (const MatmulOptions& how : {MatmulOptions{}, {false, true}, {true, false}, {true, true}}) {
    check_halves(number++, how.transpose_a ? Shape{67, 131} : Shape{131, 67},
                 how.transpose_b ? Shape{134, 67} : Shape{67, 134},
                 [=](Tensor a, Tensor b) { return matmul(a, b, how); });
  }
  const Conv2dOptions how{.stride = {1, 2}, .padding = {1, 1}};
  const Shape images{2, 9, 11, 6};
  const Shape weight{3, 2, 6, 70};
  const Shape output = ops::Convolution{images, weight, how}.output("test");
  check_halves(number++, images, weight, [=](Tensor a, Tensor b) { return conv2d(a, b, how); });
  check_halves(number++, output, weight,
               [=](Tensor a, Tensor b) { return ops::conv2d_data_gradient(a, b, images, how); });
  check_halves(number++, images, output,
               [=](Tensor a, Tensor b) { return ops::conv2d_weight_gradient(a, b, weight, how); });
  check_halves(number++, images, ops::Convolution{images, weight, {}}.output("test"),
               [=](Tensor a, Tensor b) { return ops::conv2d_parameter_gradients(a, b, weight, {})[1]; });
}

TEST_CASE("sums of pairs of f16 are rounded at random as those of other kernels") {
  // Sums of 72 multiples of 1/1024 are exact in f32, in any order, and take more bits than f16 has.
  Graph graph;
  const Tensor a = graph.input("a", {37, 72}, DType::f16);
  const Tensor b = graph.input("b", {72, 24}, DType::f16);
  const Tensor product = matmul(a, b);
  std::vector<float> values;
  for (const double value : testing::whole({37, 72}, 3, 1024).values)
    values.push_back(static_cast<float>(value) / 1024);
  for (plan::Target target : testing::product_targets()) {
    const auto rounded = [&](Rounding rounding) {
      return results(product, {{a, values}, {b, whole({72, 24}, 4)}}, false, target, rounding);
    };
    const std::vector<float> wanted = rounded(Rounding::stochastic);
    CHECK(wanted != rounded(Rounding::nearest));
    target.gemm_kernels = "dots";
    CHECK(rounded(Rounding::stochastic) == wanted);
  }
}

TEST_CASE("what accumulates in f16 adds sixteen products to each other before it adds them to a large sum") {
  // 2048 and three times sixteen eighths. One by one, eighths are lost beside 2048.
  std::vector<float> values(64, 0.125F);
  std::fill_n(values.begin(), 16, 128.0F);
  Graph graph;
  const Tensor a = graph.input("a", {3, 64}, DType::f16);
  const Tensor b = graph.input("b", {64, 1}, DType::f16);
  for (const plan::Target& target : testing::product_targets()) {
    CHECK(results(matmul(a, b), {{a, ones(3 * 64)}, {b, values}}, true, target).front() == 2054);
  }
}

TEST_CASE("transposed matmul can accumulate in f16") {
  Graph graph;
  const Tensor rows = graph.input("rows", {3, 64}, DType::f16);
  const Tensor columns = graph.input("columns", {64, 3}, DType::f16);
  const Tensor terms_along_k = graph.input("terms_along_k", {1, 64}, DType::f16);
  const Tensor terms_across_k = graph.input("terms_across_k", {64, 1}, DType::f16);
  const std::vector<float> one = ones(3 * 64);
  check_partials(matmul(rows, terms_along_k, {false, true}), {{rows, one}, {terms_along_k, terms(1)}});
  check_partials(matmul(columns, terms_across_k, {true, false}), {{columns, one}, {terms_across_k, terms(1)}});
  check_partials(matmul(columns, terms_along_k, {true, true}), {{columns, one}, {terms_along_k, terms(1)}});
}

TEST_CASE("conv2d and its data gradient can accumulate in f16") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    Graph graph;
    const Tensor images = graph.input("images", {1, 2, 2, 64}, dtype);
    const Tensor weight = graph.input("weight", {1, 1, 64, 2}, dtype);
    check_partials(conv2d(images, weight, {.stride = {2, 2}}), {{images, ones(4 * 64)}, {weight, terms(2)}});
    const Tensor cotangent = graph.input("cotangent", {1, 1, 1, 64}, dtype);
    const Tensor transposed = graph.input("transposed", {1, 1, 2, 64}, dtype);
    std::vector<float> values = terms(1);
    values.insert(values.end(), 64, 0.0F);
    check_partials(ops::conv2d_data_gradient(cotangent, transposed, {1, 2, 2, 2}, {.stride = {2, 2}}),
                   {{cotangent, ones(64)}, {transposed, values}});
  }
}

TEST_CASE("weight gradients can accumulate in f16") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    Graph graph;
    const Tensor images = graph.input("images", {4, 1, 16, 1}, dtype);
    const Tensor cotangent = graph.input("cotangent", {4, 1, 16, 2}, dtype);
    const Tensor gradient = ops::conv2d_weight_gradient(images, cotangent, {1, 1, 1, 2}, {});
    check_partials(gradient, {{images, ones(64)}, {cotangent, terms(2)}});
    // With two taps it is not a plain matrix product.
    const Tensor wide = graph.input("wide", {4, 1, 17, 1}, dtype);
    const Tensor taps = ops::conv2d_weight_gradient(wide, cotangent, {1, 2, 1, 2}, {});
    check_partials(taps, {{wide, ones(68)}, {cotangent, terms(2)}});
  }
}

TEST_CASE("convolutions in odd groups can accumulate in f16, a tap at a time") {
  Graph graph;
  const Tensor images = graph.input("images", {1, 1, 4, 32}, DType::f16);
  const Tensor weight = graph.input("weight", {1, 4, 16, 2}, DType::f16);
  std::vector<float> values;
  for (int i = 0; i < 4 * 16 * 2; ++i) values.push_back(i < 32 ? 128.0F : 0.0625F);
  check_partials(conv2d(images, weight, {.groups = 2}), {{images, ones(4 * 32)}, {weight, values}}, 2051);
}

TEST_CASE("depthwise convolutions can accumulate in f16, a tap or a line at a time") {
  const std::vector<float> four_terms{2048, 2048, 1, 1, 1, 1, 1, 1};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Graph graph;
    const Tensor images = graph.input("images", {1, 1, 4, 2}, dtype);
    const Tensor weight = graph.input("weight", {1, 4, 1, 2}, dtype);
    check_partials(conv2d(images, weight, {.groups = 2}), {{images, ones(8)}, {weight, four_terms}}, 2051);
    const Tensor cotangent = graph.input("cotangent", {1, 1, 7, 2}, dtype);
    check_partials(ops::conv2d_data_gradient(cotangent, weight, {1, 1, 4, 2}, {.padding = {0, 3}, .groups = 2}),
                   {{cotangent, ones(14)}, {weight, four_terms}}, 2051);
    const Tensor lines = graph.input("lines", {4, 1, 1, 2}, dtype);
    const Tensor of_lines = graph.input("of_lines", {4, 1, 1, 2}, dtype);
    check_partials(ops::conv2d_weight_gradient(lines, of_lines, {1, 1, 1, 2}, {.groups = 2}),
                   {{lines, ones(8)}, {of_lines, four_terms}}, 2051);
  }
}
