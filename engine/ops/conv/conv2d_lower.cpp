#include "ops/conv/conv2d.h"
#include "ops/kernel.h"
#include "ops/reduce/reduce.h"

namespace halfstep::ops {
namespace {

constexpr std::string_view op = "conv2d";

std::int64_t quads(std::int64_t elements) {
  return (elements + 3) / 4;
}

Pair extents(const Shape& images) {
  return {images[1], images[2]};
}

Pair negative(const Pair& pair) {
  return {-pair[0], -pair[1]};
}

/// The positions are the output's, the pixels the images'.
Patches forward_patches(const Convolution& convolution) {
  const Conv2dOptions& options = convolution.options;
  return {.grid = extents(convolution.output(op)),
          .image = extents(convolution.images),
          .step = options.stride,
          .tap_step = options.dilation,
          .offset = negative(options.padding),
          .kernel_width = convolution.weight[1]};
}

/// The positions are the images', the pixels the output's: the inverse relation.
Patches backward_patches(const Convolution& convolution) {
  const Conv2dOptions& options = convolution.options;
  const Pair images = extents(convolution.images);
  return {.grid = {plan::divided_up(images[0], options.stride[0]), plan::divided_up(images[1], options.stride[1])},
          .image = extents(convolution.output(op)),
          .tap_step = negative(options.dilation),
          .offset = options.padding,
          .divisor = options.stride,
          .result = images,
          .kernel_width = convolution.weight[1]};
}

/// A's rows for those: the positions of all phases.
std::int64_t rows_in_phases(const Convolution& convolution) {
  const Patches patches = backward_patches(convolution);
  const Pair phases = patches.phases();
  return convolution.images[0] * phases[0] * phases[1] * patches.grid[0] * patches.grid[1];
}

std::int64_t pixels(const Shape& images) {
  return images[0] * images[1] * images[2];
}

/// The distance between two groups' channels, in quads. Unused with one group.
std::int64_t group_stride(const Convolution& convolution, std::int64_t channels) {
  return convolution.options.groups == 1 ? 0 : quads(channels);
}

}  // namespace

WindowPush window_push(const plan::Lowering& out, const Convolution& convolution) {
  const auto pair = [&](std::uint32_t(&to)[2], std::int64_t height, std::int64_t width) {
    to[0] = index32(out, height);
    to[1] = index32(out, width);
  };
  const Conv2dOptions& options = convolution.options;
  const Shape output = convolution.output(op);
  WindowPush push{};
  pair(push.image, convolution.images[1], convolution.images[2]);
  pair(push.positions, output[1], output[2]);
  pair(push.kernel, convolution.weight[0], convolution.weight[1]);
  pair(push.stride, options.stride[0], options.stride[1]);
  pair(push.padding, options.padding[0], options.padding[1]);
  pair(push.dilation, options.dilation[0], options.dilation[1]);
  return push;
}

bool Convolution::groups_aligned() const {
  return options.groups == 1 || (in_channels() % 4 == 0 && out_channels() % 4 == 0);
}

bool Convolution::pointwise() const {
  return taps() == 1 && options.stride == Pair{1, 1} && options.padding == Pair{0, 0};
}

// y (pixel, o) = sum over taps and c of x (pixel under tap, c) w (tap, c, o)
void lower_conv2d(plan::Lowering& out, const Convolution& convolution) {
  if (convolution.depthwise()) return lower_conv2d_depthwise(out, convolution, "forward");
  if (!convolution.groups_aligned()) return lower_conv2d_grouped(out, convolution, "forward");
  Gemm gemm{.operands = convolution.pointwise() ? Operands::row_row : Operands::patches_row,
            .a = out.input(0),
            .b = out.input(1),
            .c = out.output(0),
            .rows = pixels(out.type(out.output(0)).shape),
            .columns = convolution.out_channels(),
            .k = convolution.in_channels(),
            .segments = convolution.taps(),
            .batches = convolution.options.groups,
            .a_batch = group_stride(convolution, convolution.in_channels()),
            .b_batch = group_stride(convolution, convolution.out_channels()),
            .c_batch = group_stride(convolution, convolution.out_channels()),
            .partials = out.partials().conv2d,
            .patches = forward_patches(convolution)};
  if (out.input_count() == 3) gemm.bias = out.input(2);
  lower_gemm(out, gemm);
}

// dx (pixel, c) = sum over taps and o of dy (position whose tap covers the pixel, o) w (tap, c, o)
void lower_conv2d_data_gradient(plan::Lowering& out, const Convolution& convolution) {
  if (convolution.depthwise()) return lower_conv2d_depthwise(out, convolution, "data_gradient");
  if (!convolution.groups_aligned()) return lower_conv2d_grouped(out, convolution, "data_gradient");
  lower_gemm(out, {.operands = convolution.pointwise() ? Operands::row_col : Operands::patches_col,
                   .a = out.input(0),
                   .b = out.input(1),
                   .c = out.output(0),
                   .rows = rows_in_phases(convolution),
                   .columns = convolution.in_channels(),
                   .k = convolution.out_channels(),
                   .segments = convolution.taps(),
                   .batches = convolution.options.groups,
                   .a_batch = group_stride(convolution, convolution.out_channels()),
                   .b_batch = group_stride(convolution, convolution.out_channels()),
                   .c_batch = group_stride(convolution, convolution.in_channels()),
                   .partials = out.partials().conv2d,
                   .patches = backward_patches(convolution)});
}

// dw (tap, c, o) = sum over positions of x (pixel under tap, c) dy (position, o),  db (o) = sum of dy (position, o)
void lower_conv2d_weight_gradient(plan::Lowering& out, const Convolution& convolution) {
  const bool with_bias = out.output_count() == 2;
  const bool product = !convolution.depthwise() && convolution.groups_aligned();
  if (with_bias && !product) lower_column_sums(out, out.input(1), out.output(1));
  if (convolution.depthwise()) return lower_conv2d_depthwise(out, convolution, "weight_gradient");
  if (!convolution.groups_aligned()) return lower_conv2d_grouped(out, convolution, "weight_gradient");
  Gemm gemm{.operands = Operands::pixels_row,
            .a = out.input(0),
            .b = out.input(1),
            .c = out.output(0),
            .rows = convolution.taps() * quads(convolution.in_channels()) * 4,
            .columns = convolution.out_channels(),
            .k = out.input_type(1).shape[2],
            .segments = out.input_type(1).shape[0] * out.input_type(1).shape[1],
            .batches = convolution.options.groups,
            .a_batch = group_stride(convolution, convolution.in_channels()),
            .b_batch = group_stride(convolution, convolution.out_channels()),
            .c_batch = group_stride(convolution, convolution.out_channels()),
            .partials = out.partials().conv2d,
            .patches = forward_patches(convolution)};
  if (with_bias) gemm.column_sums = out.output(1);
  gemm.patches.channels = convolution.in_channels();
  if (convolution.pointwise()) {
    gemm.operands = Operands::col_row;
    gemm.rows = convolution.in_channels();
    gemm.k *= gemm.segments;
    gemm.segments = 1;
  }
  lower_gemm(out, gemm);
}

}  // namespace halfstep::ops
