#include <halfstep/ops.h>

#include <fmt/format.h>

#include <memory>

#include "bench/commands.h"
#include "ops/conv/conv2d.h"
#include "samples/common/command_line.h"

namespace bench {
namespace {

using namespace halfstep;

struct ConvOptions {
  std::int64_t batch = 64;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t in = 32;
  std::int64_t out = 64;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  std::string dtype = "f32";
};

std::string name_of(const ConvOptions& options, std::string_view part) {
  std::string name = fmt::format("conv {} {}x{}x{}x{} to {}, {}x{}", options.dtype, options.batch, options.height,
                                 options.width, options.in, options.out, options.kernel, options.kernel);
  if (options.stride != 1) name += fmt::format(" /{}", options.stride);
  if (options.dilation != 1) name += fmt::format(" dilated {}", options.dilation);
  if (options.groups != 1) name += fmt::format(" in {} groups", options.groups);
  return name + fmt::format(" {}", part);
}

/// The flops of each of the three parts, a multiply-add counted as two, including those with the zeros of padding.
double flops_of(const ops::Convolution& convolution) {
  return 2.0 * static_cast<double>(elements(convolution.output("conv2d"))) *
         static_cast<double>(convolution.taps() * convolution.in_channels());
}

void run(const ConvOptions& options, const Bench& bench, Report& report) {
  const DType dtype = dtype_of(options.dtype);
  const Conv2dOptions how{.stride = {options.stride, options.stride},
                          .padding = {options.padding, options.padding},
                          .dilation = {options.dilation, options.dilation},
                          .groups = options.groups};
  if (options.in % options.groups != 0) {
    throw CLI::ValidationError("--groups", fmt::format("expected a divisor of {} channels", options.in));
  }
  const ops::Convolution convolution{{options.batch, options.height, options.width, options.in},
                                     {options.kernel, options.kernel, options.in / options.groups, options.out},
                                     how};
  const double flops = flops_of(convolution);
  Graph graph;
  const Tensor images = graph.input("images", convolution.images, dtype);
  const Tensor weight = graph.input("weight", convolution.weight, dtype);
  const Tensor cotangent = graph.input("cotangent", convolution.output("conv2d"), dtype);
  const auto add = [&](const char* part, Tensor result) {
    report.add(name_of(options, part), bench.run(graph, result), flops);
  };
  add("forward", conv2d(images, weight, how));
  add("data gradient", ops::conv2d_data_gradient(cotangent, weight, convolution.images, how));
  add("weight gradient", ops::conv2d_weight_gradient(images, cotangent, convolution.weight, how));
}

}  // namespace

Command add_conv(CLI::App& app) {
  CLI::App* command = app.add_subcommand("conv", "A convolution and both of its gradients");
  const auto options = std::make_shared<ConvOptions>();
  const auto add = [&](const char* flag, std::int64_t& value, const char* description) {
    command->add_option(flag, value, description)->transform(samples::whole_number(1, 65536))->capture_default_str();
  };
  add("--batch", options->batch, "Images");
  add("--height", options->height, "Rows of an image");
  add("--width", options->width, "Columns of an image");
  add("--in", options->in, "Channels of an image");
  add("--out", options->out, "Channels of the result");
  add("--kernel", options->kernel, "Extent of the square kernel");
  add("--stride", options->stride, "Pixels from one position of the kernel to the next");
  add("--dilation", options->dilation, "Pixels from one tap of the kernel to the next");
  add("--groups", options->groups, "Groups of channels that do not mix");
  command->add_option("--padding", options->padding, "Zeros round the image")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  add_dtype(*command, options->dtype);
  return timed(command, [options](const Bench& bench, Report& report) { run(*options, bench, report); });
}

}  // namespace bench
