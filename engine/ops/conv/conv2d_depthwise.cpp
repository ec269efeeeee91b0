#include <fmt/format.h>

#include <algorithm>

#include "graph/dtype.h"
#include "ops/conv/conv2d.h"
#include "ops/gemm/gemm.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

constexpr std::int64_t block_positions = 4;  ///< POSITIONS of conv2d_depthwise.comp

/// Its push constants.
struct DepthwisePush {
  std::uint32_t count, columns, pitch, blocks, segments, part_segments;
  WindowPush window;
};

DepthwisePush push_constants(const plan::Lowering& out, const Convolution& convolution) {
  const auto size = [&](std::int64_t value) { return index32(out, value); };
  DepthwisePush push{};
  push.columns = size(convolution.options.groups);
  push.pitch = size(plan::layout(convolution.images).quads_per_row());
  push.window = window_push(out, convolution);
  return push;
}

std::string shader(const plan::Lowering& out, std::string_view part) {
  return fmt::format("conv2d_depthwise.{}.{}.{}", part, graph::info(out.input_type(0).dtype).words,
                     out.partials().conv2d == DType::f16 ? "sums_f16" : "sums_f32");
}

void dispatch(plan::Lowering& out, const Convolution& convolution, std::string_view part, const DepthwisePush& push,
              const std::vector<plan::Operand>& operands, std::int64_t rounds) {
  const double terms = static_cast<double>(elements(convolution.output("conv2d")) * convolution.taps());
  dispatch_flat(out, shader(out, part), push.count, push, operands,
                {out.input_count() == 3, convolution.options.stride != Pair{1, 1}},
                {.flops = 2 * terms, .rounds = rounds});
}

/// The output's lines, in segments of up to `longest_sum` positions, are split into parts if there are too few taps and
/// channels to occupy the device.
void lower_weight_gradient(plan::Lowering& out, const Convolution& convolution) {
  DepthwisePush push = push_constants(out, convolution);
  const Shape output = convolution.output("conv2d");
  const std::int64_t sums = plan::layout(convolution.weight).quads();
  const std::int64_t wanted = std::int64_t{out.target().wanted_groups} * flat_local_size(out.target());
  const std::int64_t most_rounds = std::min<std::int64_t>(std::int64_t{out.target().max_rounds} - 1, longest_sum);
  const std::int64_t blocks = plan::divided_up(output[2], std::max<std::int64_t>(most_rounds - 2, 1));
  const std::int64_t length = plan::divided_up(output[2], blocks);
  const std::int64_t segments = output[0] * output[1] * blocks;
  const std::int64_t most = plan::divided_up(segments, std::max<std::int64_t>(1, 64 / length));
  const std::int64_t longest = std::max<std::int64_t>(most_rounds / (length + 2), 1);
  const std::int64_t part_segments =
      std::min(plan::divided_up(segments, std::min(plan::divided_up(wanted, sums), most)), longest);
  const std::int64_t parts = plan::divided_up(segments, part_segments);
  push.blocks = index32(out, blocks);
  push.segments = index32(out, segments);
  push.part_segments = index32(out, part_segments);
  push.count = index32(out, parts * sums);
  Shape shape = convolution.weight;
  shape.insert(shape.begin(), parts);
  const plan::TensorId to = out.workspace("parts", {DType::f32, shape});
  dispatch(out, convolution, "weight_gradient", push,
           {{out.input(0), plan::Access::read}, {out.input(1), plan::Access::read}, {to, plan::Access::write}},
           part_segments * (length + 2) + 1);
  lower_sum_of_parts(out, to, out.output(0), out.partials().conv2d);
}

}  // namespace

void lower_conv2d_depthwise(plan::Lowering& out, const Convolution& convolution, std::string_view part) {
  if (part == "weight_gradient") return lower_weight_gradient(out, convolution);
  const Shape& weight = convolution.weight;
  const std::int64_t rounds = weight[0] * (weight[1] + 2) + 1;
  // Sums over so many taps are cut into parts, as the kernel for other groups does.
  if (rounds > std::min<std::int64_t>(out.target().max_rounds, longest_sum)) {
    return lower_conv2d_grouped(out, convolution, part);
  }
  DepthwisePush push = push_constants(out, convolution);
  const Shape result = out.type(out.output(0)).shape;
  const std::int64_t blocks = plan::divided_up(result[2], block_positions);
  push.blocks = index32(out, blocks);
  push.count = index32(out, result[0] * result[1] * blocks * push.pitch);
  std::vector<plan::Operand> operands{
      {out.input(0), plan::Access::read}, {out.input(1), plan::Access::read}, {out.output(0), plan::Access::write}};
  // Without a bias, the weight is bound in its place and not read.
  if (part == "forward") operands.push_back({out.input(out.input_count() == 3 ? 2 : 1), plan::Access::read});
  dispatch(out, convolution, part, push, operands, rounds);
}

}  // namespace halfstep::ops
