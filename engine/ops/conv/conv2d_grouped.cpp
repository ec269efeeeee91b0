#include <fmt/format.h>

#include <algorithm>

#include "graph/dtype.h"
#include "ops/conv/conv2d.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

/// The push constants of conv2d_grouped.comp.
struct GroupedPush {
  std::uint32_t quads, columns, images, in_channels, out_channels;
  std::uint32_t x_pitch, y_pitch, result_pitch;
  std::uint32_t parts, part_length, line_segments, length;
  WindowPush window;
};

/// The sum behind one element of the result: a number of segments (taps, or parts of lines of positions), each of
/// several terms.
struct Sum {
  std::int64_t segments;
  std::int64_t terms;
};

/// Loop rounds that each of an invocation's four elements may take: by the driver's limit, and `longest_sum`.
std::int64_t most_rounds(const plan::Target& target) {
  return std::min((std::int64_t{target.max_rounds} - 1) / 4 - 2, longest_sum);
}

Sum sum_of(const plan::Target& target, const Convolution& convolution, std::string_view part) {
  const Shape output = convolution.output("conv2d");
  if (part == "forward") return {convolution.taps(), convolution.in_channels()};
  if (part == "data_gradient") return {convolution.taps(), convolution.out_channels()};
  const std::int64_t length = std::clamp<std::int64_t>(most_rounds(target) - 2, 1, output[2]);
  return {output[0] * output[1] * plan::divided_up(output[2], length), length};
}

/// Loop rounds of an invocation that processes `segments` of a sum for each of its four elements.
std::int64_t rounds_of(const Sum& sum, std::int64_t segments) {
  return 4 * (segments * (sum.terms + 2) + 2) + 1;
}

/// Segments of a part: all, or as many as `most_rounds` allow.
std::int64_t part_length(const plan::Target& target, const Sum& sum) {
  return std::clamp<std::int64_t>(most_rounds(target) / (sum.terms + 2), 1, sum.segments);
}

GroupedPush push_constants(const plan::Lowering& out, const Convolution& convolution, const plan::Layout& result) {
  const auto size = [&](std::int64_t value) { return index32(out, value); };
  const Shape output = convolution.output("conv2d");
  GroupedPush push{};
  push.quads = size(result.quads());
  push.columns = size(result.columns);
  push.images = size(output[0]);
  push.in_channels = size(convolution.in_channels());
  push.out_channels = size(convolution.out_channels());
  push.x_pitch = size(plan::layout(convolution.images).quads_per_row());
  push.y_pitch = size(plan::layout(output).quads_per_row());
  push.result_pitch = size(result.quads_per_row());
  push.window = window_push(out, convolution);
  return push;
}

}  // namespace

void lower_conv2d_grouped(plan::Lowering& out, const Convolution& convolution, std::string_view part) {
  const plan::Layout result = plan::layout(out.type(out.output(0)).shape);
  const Sum sum = sum_of(out.target(), convolution, part);
  const std::int64_t length = part_length(out.target(), sum);
  const std::int64_t parts = plan::divided_up(sum.segments, length);
  GroupedPush push = push_constants(out, convolution, result);
  push.parts = index32(out, parts);
  push.part_length = index32(out, length);
  if (part == "weight_gradient") {
    push.length = index32(out, sum.terms);
    push.line_segments = index32(out, plan::divided_up(convolution.output("conv2d")[2], sum.terms));
  }
  Shape parts_shape = out.type(out.output(0)).shape;
  parts_shape.insert(parts_shape.begin(), parts);
  const plan::TensorId to = parts == 1 ? out.output(0) : out.workspace("parts", {DType::f32, parts_shape});
  const bool has_bias = out.input_count() == 3;
  std::vector<plan::Operand> operands{
      {out.input(0), plan::Access::read}, {out.input(1), plan::Access::read}, {to, plan::Access::write}};
  // Without a bias, the weight is bound in its place and not read.
  if (part == "forward") operands.push_back({out.input(has_bias ? 2 : 1), plan::Access::read});
  const bool rounds_partials = out.partials().conv2d == DType::f16;
  const std::string_view storage = graph::info(out.type(out.output(0)).dtype).words;
  dispatch_flat(out, fmt::format("conv2d_grouped.{}.{}", part, storage), parts * result.quads(), push, operands,
                {has_bias, rounds_partials, parts > 1}, {.rounds = rounds_of(sum, length)});
  if (parts > 1) lower_sum_of_parts(out, to, out.output(0), out.partials().conv2d);
}

}  // namespace halfstep::ops
