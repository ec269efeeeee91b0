#include <fmt/format.h>

#include <algorithm>

#include "ops/conv2d.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

/// The push constants of conv2d_grouped.comp.
struct Push {
  std::uint32_t quads, columns, images, in_channels, out_channels;
  std::uint32_t x_pitch, y_pitch, result_pitch;
  WindowPush window;
};

Push push_constants(const plan::Lowering& out, const Convolution& convolution, const plan::Layout& result) {
  const auto size = [&](std::int64_t value) { return index32(out, value); };
  const Shape output = convolution.output("conv2d");
  Push push{};
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
  const plan::Layout result = plan::layout(out.output_type(0).shape);
  const Push push = push_constants(out, convolution, result);
  const bool has_bias = out.input_count() == 3;
  std::vector<plan::Operand> operands{
      {out.input(0), plan::Access::read}, {out.input(1), plan::Access::read}, {out.output(0), plan::Access::write}};
  // Without a bias the weight takes its binding, and is not read there.
  if (part == "forward") operands.push_back({out.input(has_bias ? 2 : 1), plan::Access::read});
  const bool rounds_partials = out.partials().conv2d == DType::f16;
  const std::string storage = out.output_type(0).dtype == DType::f16 ? "packed" : "f32";
  dispatch_flat(out, fmt::format("conv2d_grouped.{}.{}", part, storage), result.quads(), push, operands,
                {has_bias, rounds_partials});
}

}  // namespace halfstep::ops
