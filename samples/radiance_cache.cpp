// A network learns the indirect light of a scene while the scene is rendered (after Mueller et al. 2021). A kernel of
// this sample, shaders/box_trace.comp, traces one light path for a pixel and a sample. What comes straight from the
// lamp is little noise; what comes over other surfaces is much. The network learns the mean of the latter for a
// position and a normal, from the same paths that the picture without it is made of, and its answer takes their place.
//
//   $ bin/radiance_cache --out radiance_cache.png
//                          indirect light off by           whole picture
//    samples    seconds   by paths    by cache      by paths      by cache
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <box_show.spirv.h>
#include <box_trace.spirv.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "models/layers.h"
#include "samples/common/say.h"
#include "samples/graphics/graphics.h"
#include "samples/graphics/kernel_operator.h"
#include "samples/graphics/panels.h"

using namespace halfstep;

namespace {

struct Options : samples::GraphicsOptions {
  std::int64_t size = 192;
  std::int64_t samples = 16;
  std::int64_t batches = 16;
  std::int64_t reference = 512;
};

constexpr std::int64_t looks = 4;                       ///< paths of a pixel that the cache is asked for in a picture
constexpr std::uint32_t first_of_reference = 1U << 20;  ///< its samples are others than the picture's

/// What a path's first point is and receives: see box_trace.comp.
struct Traced {
  Tensor direct;
  Tensor position;
  Tensor normal;
  Tensor albedo;
  Tensor indirect;
};

Traced trace(Tensor paths, const Options& options) {
  const std::int64_t n = paths.dim(0);
  const std::vector<Tensor> found =
      samples::apply({.name = "box_trace",
                      .spirv = halfstep_kernels::box_trace(),
                      .outputs = {{n, 3}, {n, 3}, {n, 3}, {n, 3}, {n, 3}},
                      .count = n,
                      .words = {static_cast<std::uint32_t>(options.size), static_cast<std::uint32_t>(options.seed)},
                      .flops = 5000},
                     {paths});
  return {.direct = found[0], .position = found[1], .normal = found[2], .albedo = found[3], .indirect = found[4]};
}

/// The cache: the indirect light {n, 3} that comes to positions with normals, on average.
Tensor cache(const Scope& scope, const Traced& at) {
  const Tensor grid = models::hash_grid(
      scope / "grid", at.position,
      {.levels = 6, .features = 4, .log2_hashmap_size = 14, .base_resolution = 4, .per_level_scale = 1.5});
  const Tensor x = concat({grid, spherical_harmonics(at.normal, 3)}, 1);
  return fused_mlp(x, {models::dense_layer(scope / "hidden1", x.dim(-1), 32, models::Before::relu),
                       models::dense_layer(scope / "hidden2", 32, 32, models::Before::relu),
                       models::dense_layer(scope / "light", 32, 3)});
}

/// {n, 12}: see box_show.comp.
Tensor shown(const Traced& at, Tensor cached) {
  const std::int64_t n = cached.dim(0);
  return samples::apply({.name = "box_show", .spirv = halfstep_kernels::box_show(), .outputs = {{n, 12}}, .count = n},
                        {at.direct, at.albedo, at.indirect, cached})[0];
}

/// Sums of light for each pixel {size, size, 3}, of so many samples.
struct Light {
  std::vector<double> sums;
  double samples = 0;

  explicit Light(std::int64_t size) : sums(static_cast<std::size_t>(3 * size * size)) {}
  double mean(std::size_t i) const { return samples > 0 ? sums[i] / samples : 0; }
};

/// Adds four numbers of each pixel, of which the last is not used.
void add(Light& light, const std::vector<float>& pixels, std::size_t first, std::size_t stride) {
  for (std::size_t i = 0; i < light.sums.size(); ++i) light.sums[i] += pixels[i / 3 * stride + first + i % 3];
  light.samples++;
}

/// The light of each pixel that came straight from the lamp, and over surfaces.
std::vector<double> picture(const Light& direct, const Light& indirect) {
  std::vector<double> all(direct.sums.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = direct.mean(i) + indirect.mean(i);
  return all;
}

/// As a display shows it, from 0 to 1: bright light is compressed.
double displayed(double light) {
  return std::pow(1 - std::exp(-2.2 * std::max(light, 0.0)), 1 / 2.2);
}

Image image_of(const std::vector<double>& light, std::int64_t size) {
  Image image{size, size, {}};
  for (const double value : light) image.pixels.push_back(samples::byte_of(displayed(value)));
  return image;
}

/// The root of the mean square of the difference.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares / static_cast<double>(a.size()));
}

/// Peak signal-to-noise ratio in dB of what is displayed.
double psnr(std::vector<double> a, std::vector<double> b) {
  for (double& value : a) value = displayed(value);
  for (double& value : b) value = displayed(value);
  return -20 * std::log10(std::max(difference(a, b), 1e-9));
}

/// Traces one path for each pixel.
class Frames {
 public:
  Frames(Predictor predictor, const Options& options)
      : predictor_(std::move(predictor)), paths_(static_cast<std::size_t>(2 * options.size * options.size)) {}

  /// Four numbers {pixels, 4 k} each, of what the predictor's graph shows.
  std::vector<float> frame(std::uint32_t sample) {
    for (std::size_t i = 0; i < paths_.size() / 2; ++i) {
      paths_[2 * i] = static_cast<std::uint32_t>(i);
      paths_[2 * i + 1] = sample;
    }
    return predictor_.run({{"paths", std::span<const std::uint32_t>(paths_)}});
  }

 private:
  Predictor predictor_;
  std::vector<std::uint32_t> paths_;
};

/// What there is to come close to, by paths alone.
struct Reference {
  Light direct;
  Light indirect;
};

Reference reference_of(const Device& device, const Options& options) {
  const std::int64_t n = options.size * options.size;
  Graph graph;
  const Traced at = trace(graph.input("paths", {n, 2}, DType::u32), options);
  Frames frames(Predictor::compile(device, graph, shown(at, at.indirect)), options);
  Reference reference{Light(options.size), Light(options.size)};
  for (std::int64_t i = 0; i < options.reference && !interrupted(); ++i) {
    const std::vector<float> pixels = frames.frame(first_of_reference + static_cast<std::uint32_t>(i));
    add(reference.direct, pixels, 0, 12);
    add(reference.indirect, pixels, 4, 12);
  }
  return reference;
}

/// How far a picture is from the reference.
struct Quality {
  double indirect = 0;  ///< root of the mean square of the error of the indirect light alone
  double decibels = 0;  ///< of the whole picture
};

/// Renders and learns, sample by sample.
class Rendering {
 public:
  Rendering(Trainer& trainer, const Options& options, const Reference& reference)
      : trainer_(trainer),
        options_(options),
        reference_(reference),
        frames_(compile(trainer, options), options),
        direct_(options.size),
        paths_(options.size) {}

  void run() {
    samples::say("                       indirect light off by           whole picture\n");
    samples::say(" samples    seconds   by paths    by cache      by paths      by cache\n");
    for (std::uint32_t sample = 0; sample < options_.samples && !interrupted(); ++sample) {
      const auto start = std::chrono::steady_clock::now();
      const std::vector<float> pixels = frames_.frame(sample);
      add(direct_, pixels, 0, 12);
      add(paths_, pixels, 4, 12);
      for (std::int64_t i = 0; i < options_.batches; ++i) trainer_.step();
      trainer_.finish();
      seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const bool is_round = (sample & (sample + 1)) == 0;
      if (is_round || sample + 1 == options_.samples || interrupted()) look(sample);
    }
  }

  bool has_pictures() const { return !with_.empty(); }

  std::vector<samples::Panel> panels() const {
    const std::int64_t size = options_.size;
    return {{image_of(without_, size), fmt::format("paths: {:.1f} dB", by_paths_.decibels)},
            {image_of(with_, size), fmt::format("cache: {:.1f} dB", by_cache_.decibels)},
            {image_of(picture(reference_.direct, reference_.indirect), size), "reference"}};
  }

  nlohmann::json report() const {
    return {{"samples", direct_.samples},
            {"seconds", seconds_},
            {"indirect_error", {{"paths", by_paths_.indirect}, {"cache", by_cache_.indirect}}},
            {"psnr", {{"paths", by_paths_.decibels}, {"cache", by_cache_.decibels}}}};
  }

 private:
  static Predictor compile(const Trainer& trainer, const Options& options) {
    Graph graph;
    const Traced at = trace(graph.input("paths", {options.size * options.size, 2}, DType::u32), options);
    return Predictor::compile(trainer, graph, shown(at, cache(graph.root(), at)));
  }

  /// The picture with the cache has the lamp's light by all paths so far, and the cache's answer as it is now for the
  /// first points of the last few.
  void look(std::uint32_t sample) {
    Light cached(options_.size);
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(looks, sample + 1); ++i) {
      add(cached, frames_.frame(sample - i), 8, 12);
    }
    without_ = picture(direct_, paths_);
    with_ = picture(direct_, cached);
    by_paths_ = quality(without_, paths_);
    by_cache_ = quality(with_, cached);
    samples::say("{:8}  {:9.1f}   {:8.4f}    {:8.4f}   {:8.1f} dB   {:8.1f} dB\n", sample + 1, seconds_,
                 by_paths_.indirect, by_cache_.indirect, by_paths_.decibels, by_cache_.decibels);
  }

  Quality quality(const std::vector<double>& whole, const Light& indirect) const {
    const Light nothing(options_.size);
    return {.indirect = difference(picture(nothing, indirect), picture(nothing, reference_.indirect)),
            .decibels = psnr(whole, picture(reference_.direct, reference_.indirect))};
  }

  Trainer& trainer_;
  const Options& options_;
  const Reference& reference_;
  Frames frames_;
  Light direct_;
  Light paths_;
  double seconds_ = 0;
  std::vector<double> without_;
  std::vector<double> with_;
  Quality by_paths_;
  Quality by_cache_;
};

/// The paths of each sample in turn, in as many batches as Options say; each has pixels of all over the picture.
Source paths_of(const Options& options) {
  const std::int64_t pixels = options.size * options.size;
  const std::int64_t batches = options.batches;
  Source source{.name = "paths", .fields = {{.name = "paths", .type = ElementType::u32, .shape = {2}}}};
  source.fill = [pixels, batches](const SourceBatch& batch) {
    const std::span<std::uint32_t> paths = batch.values<std::uint32_t>(0);
    for (std::size_t i = 0; i < paths.size() / 2; ++i) {
      const std::int64_t pixel = (static_cast<std::int64_t>(i) * batches + batch.number % batches) % pixels;
      paths[2 * i] = static_cast<std::uint32_t>(pixel);
      paths[2 * i + 1] = static_cast<std::uint32_t>(batch.number / batches);
    }
  };
  return source;
}

void render(const Options& options, const Device& device) {
  const auto start = std::chrono::steady_clock::now();
  const Reference reference = reference_of(device, options);
  if (interrupted()) return;
  samples::say("{} x {} pixels on {}; {} paths of each to compare with took {:.1f} s\n", options.size, options.size,
               device.info().name, options.reference,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());

  const Source source = paths_of(options);
  const std::int64_t batch = (options.size * options.size + options.batches - 1) / options.batches;
  const std::int64_t steps = options.samples * options.batches;
  Graph graph;
  const Tensor paths = graph.input("paths", {batch, 2}, DType::u32);
  const Traced at = trace(paths, options);
  Trainer trainer = Trainer::compile(device, graph,
                                     {.loss = mse_loss(cache(graph.root(), at), at.indirect),
                                      .optimizer = samples::grid_adam(options, steps, 0.05F),
                                      .precision = Precision::level(options.precision),
                                      .seed = options.seed,
                                      .feed = Feed{.inputs = {{.input = paths}}},
                                      .source = &source});
  Rendering rendering(trainer, options, reference);
  rendering.run();
  if (!rendering.has_pictures()) return;  // interrupted
  samples::write_panels(options.out, rendering.panels(), 3);
  samples::write_results(options, rendering.report(), device);
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--size", options.size, "Height and width of the pictures")
      ->transform(samples::whole_number(16, 1024))
      ->capture_default_str();
  app.add_option("--samples", options.samples, "Paths of each pixel")
      ->transform(samples::whole_number(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--batches", options.batches, "Steps to train with the paths of a sample")
      ->transform(samples::whole_number(1, 256))
      ->capture_default_str();
  app.add_option("--reference", options.reference, "Paths of each pixel of the picture to compare with")
      ->transform(samples::whole_number(2, 1'000'000))
      ->capture_default_str();
  samples::add_graphics_options(app, options, "a twentieth", "the paths");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Renders a small scene by light paths, and learns its indirect light on the way.");
  Options options;
  options.rate = 0.005F;
  options.out = "radiance_cache.png";
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] {
    return samples::run_graphics(options, {}, {}, [&](const Device& device) { render(options, device); });
  });
}
