// Tests every GEMM kernel, whichever the rule prefers.
#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/kernel_targets.h"
#include "harness/values.h"
#include "ops/conv/conv2d.h"
#include "ops/gemm/gemm_kernels.h"
#include "ops/norm/batch_norm.h"
#include "plan/program.h"
#include "reference/conv2d.h"
#include "reference/matmul.h"
#include "reference/norm.h"
#include "reference/sum.h"

using namespace halfstep;
using testing::Check;
using testing::kernel_targets;
using testing::uniform;

namespace {

/// Crosses the edges of every tile, and of a step along k.
const Shape a_shape{131, 67};
const Shape b_shape{67, 134};

Shape turned(const Shape& shape, bool turn) {
  return turn ? Shape{shape[1], shape[0]} : shape;
}

constexpr double arithmetic = 3e-5;

/// Those whose kernels may read two quads of f16 at once.
std::vector<plan::Target> paired_targets() {
  std::vector<plan::Target> paired = kernel_targets();
  std::erase_if(paired, [](const plan::Target& target) {
    const std::string_view name = target.gemm_kernels;
    return !name.starts_with("tile") && !name.starts_with("dots") && !name.starts_with("half") &&
           !name.starts_with("cooperative");
  });
  return paired;
}

/// A convolution followed by a batch norm, with images whose smallest element is `least`.
struct Product {
  Shape images;
  Shape weight;
  int least;
};

/// Integers, so that no product rounds: `least` and the two after it.
reference::Array whole(const Shape& shape, std::uint64_t seed, int least) {
  reference::Array values = testing::whole(shape, seed, 3);
  for (double& value : values.values) value += least;
  return values;
}

/// The mean and the variance of the convolution's result, as the norm computes them, and the norm's result.
enum class Norm : std::uint8_t { mean, variance, y };

Tensor norm_of(std::span<const Tensor> x, Norm wanted) {
  const Tensor images = conv2d(x[0], x[1]);
  const auto norm = ops::batch_norm_training(images, x[2], x[3], {x[4], x[5]}, {.epsilon = 1e-3F, .momentum = 1});
  if (wanted == Norm::y) return norm.y;
  return wanted == Norm::mean ? norm.next_mean : norm.next_variance;
}

reference::Array expected_norm(std::span<const reference::Array> x, Norm wanted) {
  const reference::Array images = reference::conv2d(x[0], x[1], {});
  if (wanted == Norm::y) return reference::batch_norm(images, x[2], x[3], 1e-3F);
  const auto found = reference::channel_statistics(images, true);
  return wanted == Norm::mean ? found.mean : found.variance;
}

Check norm_check(const Product& product, Norm wanted) {
  const Shape channels{product.weight.back()};
  const bool far = product.least != 0;
  Check check;
  check.name = fmt::format("norm {} of {}", static_cast<int>(wanted), to_string(product.images));
  check.build = [=](std::span<const Tensor> x) { return norm_of(x, wanted); };
  check.inputs = {{whole(product.images, 1, product.least)}, {whole(product.weight, 2, far ? 0 : -1)}};
  for (std::uint64_t seed = 3; seed < 5; ++seed) check.inputs.push_back({uniform(channels, seed)});
  for (std::uint64_t seed = 5; seed < 7; ++seed) {
    check.inputs.push_back({.values = uniform(channels, seed), .kind = testing::Kind::state});
  }
  check.reference = [=](std::span<const reference::Array> x) { return expected_norm(x, wanted); };
  check.arithmetic = 1e-6;
  if (far) check.arithmetic = 2200 * 0x1p-23;  // the mean's rounding, in units of the std; the mean is 2200 of them
  check.targets = kernel_targets();
  return check;
}

/// The number of dispatches that compute moments separately from the GEMM.
std::size_t dispatches_of_moments(const Check& check, plan::Target target, DType dtype) {
  target.max_rounds = plan::Target{}.max_rounds;  // a limit of loop rounds may split k
  Graph graph;
  std::vector<Tensor> inputs;
  for (const auto& operand : check.inputs) {
    const DType own = operand.kind == testing::Kind::state ? DType::f32 : dtype;
    inputs.push_back(graph.input(fmt::format("x{}", inputs.size()), operand.values.shape, own));
  }
  check.build(inputs);
  plan::ProgramBuilder builder(target);
  for (const Tensor& input : inputs)
    builder.values().bind(input.id(), builder.tensor("x", {input.dtype(), input.shape()}));
  for (const graph::Node& node : graph.ir().nodes) builder.lower(graph.ir(), node);
  return static_cast<std::size_t>(std::ranges::count_if(builder.finish().dispatches, [](const auto& dispatch) {
    return dispatch.shader.starts_with("channel_moments.");
  }));
}

/// This device as a GPU without limits that matter.
plan::Target gpu_target() {
  plan::Target target = testing::context().target();
  target.cpu = false;
  target.max_invocations = 1024;
  target.max_rounds = plan::Target{}.max_rounds;
  return target;
}

}  // namespace

TEST_CASE("every kernel computes matrix products") {
  for (const MatmulOptions& options : {MatmulOptions{}, {false, true}, {true, false}, {true, true}}) {
    testing::check_operator(
        {.name = "matmul",
         .build = [=](std::span<const Tensor> x) { return matmul(x[0], x[1], options); },
         .inputs = {{uniform(turned(a_shape, options.transpose_a), 1)},
                    {uniform(turned(b_shape, options.transpose_b), 2)}},
         .reference = [=](std::span<const reference::Array> x) { return reference::matmul(x[0], x[1], options); },
         .arithmetic = arithmetic,
         .targets = kernel_targets()});
  }
}

TEST_CASE("kernels read two quads of f16 at once where all rows have an even number of them") {
  const Shape a{136, 72};
  const Shape b{72, 136};
  for (const MatmulOptions& options : {MatmulOptions{}, {false, true}, {true, false}, {true, true}}) {
    testing::check_operator(
        {.name = "matmul",
         .build = [=](std::span<const Tensor> x) { return matmul(x[0], x[1], options); },
         .inputs = {{uniform(turned(a, options.transpose_a), 1)}, {uniform(turned(b, options.transpose_b), 2)}},
         .reference = [=](std::span<const reference::Array> x) { return reference::matmul(x[0], x[1], options); },
         .arithmetic = arithmetic,
         .dtypes = {DType::f16},
         .targets = paired_targets()});
  }
  const Shape images{2, 9, 11, 8};
  const Shape weight{3, 2, 8, 72};
  const Shape output = ops::Convolution{images, weight, {}}.output("test");
  testing::check_operator(
      {.name = "conv2d",
       .build = [=](std::span<const Tensor> x) { return conv2d(x[0], x[1]); },
       .inputs = {{uniform(images, 1)}, {uniform(weight, 2)}},
       .reference = [=](std::span<const reference::Array> x) { return reference::conv2d(x[0], x[1], {}); },
       .arithmetic = arithmetic,
       .dtypes = {DType::f16},
       .targets = paired_targets()});
  for (const std::size_t result : {0U, 1U}) {
    testing::check_operator(
        {.name = "gradients of weight and bias",
         .build =
             [=](std::span<const Tensor> x) { return ops::conv2d_parameter_gradients(x[0], x[1], weight, {})[result]; },
         .inputs = {{uniform(images, 1)}, {uniform(output, 2)}},
         .reference =
             [=](std::span<const reference::Array> x) {
               return result == 0 ? reference::conv2d_weight_gradient(x[0], x[1], weight, {})
                                  : reference::sum(x[1], {0, 1, 2}, false);
             },
         .arithmetic = arithmetic,
         .dtypes = {DType::f16},
         .targets = paired_targets()});
  }
}

TEST_CASE("every kernel sums the columns of a weight gradient's cotangent on its way") {
  const Shape images{3, 17, 19, 6};                                       // rows of B, too, are no multiple of four
  for (const Shape& weight : {Shape{3, 2, 6, 77}, Shape{1, 1, 6, 37}}) {  // patches, and plain rows
    const Shape output = ops::Convolution{images, weight, {}}.output("test");
    for (const std::size_t result : {0U, 1U}) {
      testing::check_operator({.name = "gradients of weight and bias",
                               .build =
                                   [=](std::span<const Tensor> x) {
                                     return ops::conv2d_parameter_gradients(x[0], x[1], weight, {})[result];
                                   },
                               .inputs = {{uniform(images, 1)}, {uniform(output, 2)}},
                               .reference =
                                   [=](std::span<const reference::Array> x) {
                                     return result == 0 ? reference::conv2d_weight_gradient(x[0], x[1], weight, {})
                                                        : reference::sum(x[1], {0, 1, 2}, false);
                                   },
                               .arithmetic = arithmetic,
                               .dtypes = {DType::f32, DType::f16},
                               .targets = kernel_targets()});
    }
  }
}

TEST_CASE("lanes of a GPU share the parts of a sum") {
  plan::Target target = gpu_target();
  target.wanted_groups = 400;
  target.gemm_kernels = "tile32";
  for (const std::int64_t k : {8000, 1100}) {  // 125 parts, of which 8 lanes have up to 16, and 17
    testing::check_operator(
        {.name = "linear",
         .build = [](std::span<const Tensor> x) { return linear(x[0], x[1], x[2]); },
         .inputs = {{uniform(Shape{12, k}, 1)}, {uniform(Shape{k, 20}, 2)}, {uniform(Shape{20}, 3)}},
         .reference = [](std::span<const reference::Array> x) { return reference::linear(x[0], x[1], x[2]); },
         .arithmetic = arithmetic,
         .targets = {target}});
  }
  const Shape images{4, 50, 40, 6};
  const Shape weight{1, 1, 6, 20};
  const Shape output = ops::Convolution{images, weight, {}}.output("test");
  testing::check_operator(
      {.name = "bias gradient",
       .build = [=](std::span<const Tensor> x) { return ops::conv2d_parameter_gradients(x[0], x[1], weight, {})[1]; },
       .inputs = {{uniform(images, 1)}, {uniform(output, 2)}},
       .reference =
           [](std::span<const reference::Array> x) {
             return reference::sum(x[1], {0, 1, 2}, false);
           },
       .arithmetic = arithmetic,
       .targets = {target}});
}

TEST_CASE("every kernel finds the moments of its columns for the norm that follows") {
  // Several merges of parts, a mean far from zero (f16 cannot represent the differences), and a GEMM of plain rows.
  // Compiling kernels takes most of this test's time: so f16 is tested with the first product, and bf16, which is read
  // in words like f16, with one kernel.
  const std::vector<Product> products{
      {{3, 29, 31, 3}, {3, 3, 3, 37}, 0}, {{2, 9, 14, 6}, {3, 3, 6, 70}, 300}, {{131, 1, 1, 67}, {1, 1, 67, 19}, 0}};
  for (const Product& product : products) {
    const bool is_first = &product == &products.front();
    for (const Norm wanted : {Norm::mean, Norm::variance, Norm::y}) {
      Check check = norm_check(product, wanted);
      check.dtypes = is_first ? std::vector{DType::f32, DType::f16} : std::vector{DType::f32};
      testing::check_operator(check);
      if (!is_first) continue;
      check.dtypes = {DType::bf16};
      check.targets = {check.targets.front()};
      testing::check_operator(check);
    }
    plan::Target unfused = testing::product_targets().front();
    unfused.fusion = false;
    const Check norm = norm_check(product, Norm::y);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const plan::Target& target : kernel_targets()) CHECK(dispatches_of_moments(norm, target, dtype) == 0);
      CHECK(dispatches_of_moments(norm, unfused, dtype) == 1);
    }
  }
}

TEST_CASE("tiles take no more shared memory than there is") {
  plan::Target target = gpu_target();
  for (const std::uint32_t bytes : {16384U, 32768U}) {
    target.shared_memory_bytes = bytes;
    const std::vector<ops::GemmKernel> all = ops::gemm_kernels(target, {});
    CHECK(std::ranges::count(all, "tile128", &ops::GemmKernel::name) == (bytes == 32768 ? 1 : 0));
    CHECK(std::ranges::count(all, "tile64", &ops::GemmKernel::name) == 1);
  }
}

TEST_CASE("few tiles with a long k are large and cut along k, with a short k they are small") {
  plan::Target target = gpu_target();
  target.shared_memory_bytes = 65536;
  target.compute_units = 60;
  target.wanted_groups = 240;
  const auto first = [&](std::int64_t segments) {
    const ops::Problem problem{
        .operands = ops::Operands::pixels_row, .rows = 1152, .columns = 128, .k = 28, .segments = segments};
    return ops::gemm_kernels(target, problem).front().name;
  };
  CHECK(first(64 * 28) == "tile128");
  CHECK(first(4) == "tile64");
}

TEST_CASE("a norm in f32 takes the moments of a product in f16 as it is rounded, without a pass of its own") {
  // Sums of 2049 and 2051 are stored as 2048 and 2052.
  reference::Array images({64, 3, 3, 2}, 2048);
  for (std::size_t row = 0; row < images.values.size() / 2; ++row) images.values[2 * row + 1] = row % 4 == 0 ? 3 : 1;
  const Shape channels{5};
  const auto norm = [](std::span<const Tensor> x) {
    const Tensor wide = cast(conv2d(x[0], x[1]), DType::f32);
    return ops::batch_norm_training(wide, cast(x[2], DType::f32), cast(x[3], DType::f32), {x[4], x[5]},
                                    {.epsilon = 1e-3F, .momentum = 1});
  };
  Check check;
  check.name = "norm of a cast product";
  check.build = [=](std::span<const Tensor> x) { return norm(x).next_mean; };
  check.inputs = {{images}, {reference::Array({1, 1, 2, 5}, 1)}, {uniform(channels, 1)}, {uniform(channels, 2)}};
  for (std::uint64_t seed = 3; seed < 5; ++seed)
    check.inputs.push_back({.values = uniform(channels, seed), .kind = testing::Kind::state});
  check.reference = [=](std::span<const reference::Array>) { return reference::Array(channels, 2049); };
  check.arithmetic = 1e-6;
  check.dtypes = {DType::f16};
  check.targets = kernel_targets();
  testing::check_operator(check);
  for (const plan::Target& target : kernel_targets()) CHECK(dispatches_of_moments(check, target, DType::f16) == 0);
}

TEST_CASE("matrix units are for products of the types that they have") {
  plan::Target target = gpu_target();
  target.shared_memory_bytes = 65536;
  target.subgroups.size = 32;
  target.subgroups.shuffle = true;
  target.matrix_shapes = {{16, 16, 16, false}};
  const auto units = [&](DType dtype) {
    return std::ranges::count_if(ops::gemm_kernels(target, {.dtype = dtype}),
                                 [](const ops::GemmKernel& kernel) { return kernel.name.starts_with("cooperative"); });
  };
  CHECK(units(DType::f16) > 0);
  CHECK(units(DType::bf16) == 0);
  target.matrix_shapes.push_back({16, 16, 16, false, plan::MatrixType::bfloat16});
  CHECK(units(DType::bf16) > 0);
  CHECK(units(DType::f32) == 0);
  // Of numbers of 8 bits in f16, those for 8 bits come first, in fragments that have whole words of them.
  target.matrix_shapes.push_back({16, 16, 4, false, plan::MatrixType::float8});
  const ops::Problem in_8_bits{.dtype = DType::f16, .float8 = true};
  CHECK(ops::gemm_kernels(target, in_8_bits).front().matrices == plan::MatrixType::float16);
  target.matrix_shapes.push_back({16, 16, 16, false, plan::MatrixType::float8});
  const ops::GemmKernel first = ops::gemm_kernels(target, in_8_bits).front();
  CHECK(first.name.find(".float8") != std::string::npos);
  CHECK(first.matrices == plan::MatrixType::float8);
  CHECK(ops::gemm_kernels(target, {.dtype = DType::f16}).front().matrices == plan::MatrixType::float16);
  const std::vector<ops::GemmKernel> both = ops::gemm_kernels(target, in_8_bits);
  CHECK(both[1].matrices == plan::MatrixType::float16);  // so that it is timed beside the first
  target.gemm_kernels = first.name;                      // other products are computed as ever
  CHECK(ops::gemm_kernels(target, {.dtype = DType::f16}).front().name.find(".float8") == std::string::npos);
}

TEST_CASE("tiles on matrix units go over k in long steps of the largest fragments, the best of each size first") {
  plan::Target target = gpu_target();
  target.max_rounds = plan::Target{}.max_rounds;
  target.shared_memory_bytes = 49152;
  target.subgroups.size = 32;
  target.subgroups.shuffle = true;
  target.matrices_along_k = false;
  target.matrix_shapes = {{16, 8, 16}, {16, 16, 16}, {16, 8, 8}, {128, 16, 16}};
  const auto names = [&](std::int64_t k) {
    std::vector<std::string> found;
    const ops::Problem problem{.dtype = DType::f16, .rows = 4096, .columns = 4096, .k = k};
    for (const ops::GemmKernel& kernel : ops::gemm_kernels(target, problem)) found.push_back(kernel.name);
    found.resize(4);
    return found;
  };
  CHECK(names(4096) == std::vector<std::string>{"cooperative128.16x16x16.step64", "cooperative64.16x16x16.step64",
                                                "cooperative32.16x16x16.step64",
                                                "cooperative128.16x16x16.step64.transposing"});
  CHECK(names(32)[0] == "cooperative128.16x16x16");
  target.shared_memory_bytes = 32768;  // a long step of the largest tile takes 36 KiB
  CHECK(names(4096)[0] == "cooperative128.16x16x16");
}

TEST_CASE("pairs of f16 are multiplied with sums in f32 where the device has that, after matrix units") {
  plan::Target target = gpu_target();
  target.shared_memory_bytes = 65536;
  target.subgroups.size = 32;
  target.subgroups.shuffle = true;
  const auto first = [&](const ops::Problem& problem) {
    const std::string name = ops::gemm_kernels(target, problem).front().name;
    return name.substr(0, name.find_first_of("0123456789"));
  };
  target.matrix_shapes.clear();
  target.float16 = {.arithmetic = true};
  CHECK(first({.dtype = DType::f16}) == "tile");
  target.float16.dots = true;
  CHECK(first({.dtype = DType::f16}) == "dots");
  CHECK(first({.dtype = DType::f16, .float16_partials = true}) == "half");
  CHECK(first({.dtype = DType::bf16}) == "tile");
  CHECK(first({.dtype = DType::f32}) == "tile");
  target.matrix_shapes = {{16, 16, 16, false}};
  CHECK(first({.dtype = DType::f16}) == "cooperative");
  CHECK(ops::gemm_kernels(plan::reproducible(target), {.dtype = DType::f16}).front().name.starts_with("tile"));
}

TEST_CASE("a kernel that the device does not have is refused") {
  plan::Target target = testing::context().target();
  target.gemm_kernels = "tile3";
  CHECK(ops::gemm_kernels(target, {}).size() == 1);
  target.gemm_kernels = "fastest";
  CHECK_THROWS_WITH_AS(ops::gemm_kernels(target, {}),
                       doctest::Contains("[gemm] expected HALFSTEP_GEMM to begin the name of a kernel, got fastest"),
                       Error);
}
