// Plots the distribution of LeNet-5's gradients by exponent, beside the range of f16, and the effect of a loss scale.
//
//   $ bin/plot_numerics --out gradients.svg
//   f32                  31.5% zeros
//   f16, no scale        51.4% zeros
//   f16, scale 65536     31.7% zeros
//   gradients.svg written
//
// The zeros in f32 come from units that no image of the batch activates; the other zeros come from underflow.
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "models/lenet5.h"
#include "samples/common/command_line.h"
#include "samples/common/data.h"

using namespace halfstep;

namespace {

struct Options {
  std::filesystem::path out = "gradients.svg";
  float loss_scale = 65536;
  float input_scale = 1e-3F;  ///< small images give small gradients: in f16 without a loss scale, a fifth underflows
  std::int64_t steps = 20;
  samples::CommonOptions common;
};

/// The exponents of all parameters' gradients, summed over the recorded steps.
struct Distribution {
  std::string name;
  std::string colour;
  double elements = 0;
  double zeros = 0;
  std::array<double, TensorStatistics::bins> bins{};

  void add(const TensorStatistics& seen) {
    elements += static_cast<double>(seen.elements);
    zeros += static_cast<double>(seen.zeros);
    for (std::size_t i = 0; i < bins.size(); ++i) bins[i] += static_cast<double>(seen.exponents[i]);
  }
};

Distribution measure(const Device& device, const samples::Data& data, const Options& options, std::string name,
                     std::string colour, const Precision& precision) {
  constexpr std::int64_t batch = 32;
  Graph graph;
  Shape shape = data.train.sample_shape;
  shape.insert(shape.begin(), batch);
  const Tensor images = graph.input("images", shape);
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor logits = models::lenet5(graph.root(), images, data.train.classes, normal(0.02F));
  TrainerOptions training{.loss = cross_entropy(logits, labels)};
  training.optimizer = Sgd{.rate = 0.01F, .momentum = 0.9F};
  training.precision = precision;
  training.seed = options.common.seed;
  training.feed = Feed{.samples = images, .labels = labels, .stddev = {1 / options.input_scale}};
  training.training_set = &data.train;
  Trainer trainer = Trainer::compile(device, graph, training);
  trainer.inspect().watch("*.gradient");
  Distribution result;
  result.name = std::move(name);
  result.colour = std::move(colour);
  for (std::int64_t i = 0; i < options.steps; ++i) trainer.step();
  trainer.finish();
  for (const TensorStatistics& seen : trainer.inspect().take_records()) result.add(seen);
  return result;
}

/// An SVG file, built line by line.
class Picture {
 public:
  static constexpr double width = 960;
  static constexpr double height = 440;
  static constexpr double left = 70;
  static constexpr double right = 30;
  static constexpr double top = 92;
  static constexpr double bottom = 64;
  static constexpr int first = -40;
  static constexpr int last = 18;

  static double x(double exponent) { return left + (exponent - first) / (last - first) * (width - left - right); }
  double y(double share) const { return height - bottom - share / most_ * (height - top - bottom); }

  explicit Picture(double most) : most_(most) {
    line(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {} {}' font-family='Helvetica, Arial, sans-serif' "
        "font-size='13' fill='#333'>",
        width, height);
    line("<rect width='{}' height='{}' fill='white'/>", width, height);
  }

  void range(int from, int to, std::string_view colour, std::string_view name) {
    line("<rect x='{:.1f}' y='{}' width='{:.1f}' height='{}' fill='{}'/>", x(from), top, x(to) - x(from),
         height - top - bottom, colour);
    line("<text x='{:.1f}' y='{}' text-anchor='middle' fill='#777'>{}</text>", (x(from) + x(to)) / 2, top + 18, name);
  }

  void axes() {
    for (int exponent = first; exponent <= last; exponent += 4) {
      line("<line x1='{0:.1f}' x2='{0:.1f}' y1='{1}' y2='{2}' stroke='#999'/>", x(exponent), height - bottom,
           height - bottom + 5);
      line("<text x='{:.1f}' y='{}' text-anchor='middle'>2<tspan dy='-5' font-size='10'>{}</tspan></text>", x(exponent),
           height - bottom + 21, exponent);
    }
    for (double share = 0; share <= most_; share += 0.05) {
      line("<text x='{}' y='{:.1f}' text-anchor='end'>{:.0f}%</text>", left - 8, y(share) + 4, 100 * share);
      line("<line x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}' stroke='#ddd'/>", left, width - right, y(share));
    }
    line("<text x='{:.1f}' y='{}' text-anchor='middle'>magnitude of a gradient, as it is stored</text>",
         (left + width - right) / 2, height - 14);
  }

  /// A step curve over the bins, and its legend entry.
  void curve(const Distribution& d, std::size_t place) {
    std::string path = fmt::format("M{:.1f},{:.1f}", x(first), y(0));
    for (int exponent = first; exponent < last; ++exponent) {
      const double share = d.bins[static_cast<std::size_t>(exponent - TensorStatistics::first_exponent)] / d.elements;
      path += fmt::format(" L{:.1f},{:.1f} L{:.1f},{:.1f}", x(exponent), y(share), x(exponent + 1), y(share));
    }
    line("<path d='{} L{:.1f},{:.1f}' fill='{}' fill-opacity='0.16' stroke='{}' stroke-width='2'/>", path, x(last),
         y(0), d.colour, d.colour);
    const double at = left + static_cast<double>(place) * 290;
    line("<rect x='{}' y='52' width='14' height='14' fill='{}'/>", at, d.colour);
    line("<text x='{}' y='64'>{}: {:.1f}% are zero</text>", at + 22, d.name, 100 * d.zeros / d.elements);
  }

  void title(std::string_view text) {
    line("<text x='{}' y='30' font-size='17' font-weight='bold'>{}</text>", left, text);
  }

  std::string finish() { return text_ + "</svg>\n"; }

 private:
  template <typename... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }

  double most_;
  std::string text_;
};

std::string draw(const std::vector<Distribution>& distributions) {
  double most = 0.1;
  for (const Distribution& d : distributions) most = std::max(most, std::ranges::max(d.bins) / d.elements);
  Picture picture(std::ceil(most * 1.15 / 0.05) * 0.05);
  picture.title("Gradients of LeNet-5's weights by exponent");
  picture.range(Picture::first, -24, "#fbeaea", "zero in f16");
  picture.range(-24, -14, "#fdf6e3", "subnormal");
  picture.range(-14, 16, "#eaf5ea", "f16's normal numbers");
  picture.range(16, Picture::last, "#fbeaea", "&#8734;");
  picture.axes();
  for (std::size_t i = 0; i < distributions.size(); ++i) picture.curve(distributions[i], i);
  return picture.finish();
}

Precision half(LossScale scale) {
  Precision precision = Precision::mixed();
  precision.loss_scale = scale;
  return precision;
}

int run(const Options& options) {
  samples::check_outputs({{"--out", options.out}});
  const Device device = Device::open(options.common.device);
  const samples::Data data = samples::read_data(device, options.common, {.shape = {28, 28, 1}});
  const std::string scaled = fmt::format("f16, scale {:g}", options.loss_scale);
  const std::vector<Distribution> distributions{
      measure(device, data, options, "f32", "#777777", Precision::float32()),
      measure(device, data, options, "f16, no scale", "#d1495b", half(LossScale::none())),
      measure(device, data, options, scaled, "#2a7ab9", half(LossScale::fixed(options.loss_scale)))};
  for (const Distribution& d : distributions) fmt::print("{:<20} {:4.1f}% zeros\n", d.name, 100 * d.zeros / d.elements);
  const std::string picture = draw(distributions);
  const Bytes parts[] = {std::as_bytes(std::span(picture))};
  write_atomically(options.out, parts);
  fmt::print("{} written\n", options.out.string());
  return samples::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Draws the exponents of LeNet-5's gradients beside the range of f16, with and without a loss scale.");
  Options options;
  app.add_option("--out", options.out, "Picture to write, as SVG")->capture_default_str()->group(samples::files_group);
  app.add_option("--loss-scale", options.loss_scale, "The scale to compare with none")
      ->check(samples::number_above(0, 16777216))
      ->capture_default_str();
  app.add_option("--input-scale", options.input_scale,
                 "What images are multiplied by: the less, the more gradients underflow")
      ->check(samples::number_above(0, 1000))
      ->capture_default_str();
  app.add_option("--steps", options.steps, "Steps to look at")
      ->transform(samples::whole_number(1, 10000))
      ->capture_default_str();
  samples::add_data_options(app, options.common);
  return samples::run_program(app, argc, argv, [&] { return run(options); });
}
