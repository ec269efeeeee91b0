// A network learns a shape: from a position to the distance of the nearest surface there. The shape is then shown by
// sphere tracing (Hart 1996), all of it on the device: the network says the distances of a batch of rays, and a kernel
// of this sample, shaders/sdf_march.comp, advances each ray by its own. Surface, shadows and ambient occlusion are
// found by distances alone. The same graph with the true distances in place of the network's shows what there is to
// learn.
//
//   $ bin/sdf_fit --out sdf_fit.png
//     step    seconds   distance error   depth error   normals off by   other outline
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <random>

#include "models/layers.h"
#include "samples/common/say.h"
#include "samples/graphics/graphics.h"
#include "samples/graphics/panels.h"
#include "samples/graphics/sphere_tracing.h"

using namespace halfstep;

namespace {

struct Options : samples::GridOptions {
  std::int64_t size = 224;
  std::int64_t batch = 8192;
  std::int64_t points = 1 << 18;
};

constexpr std::int64_t at_once = 1 << 14;  ///< rays, or positions, of a run
constexpr double near_surface = 0.04;

/// The network, whose parameters several applications share.
class Network {
 public:
  Network(const Scope& scope, const Options& options)
      : grid_{.levels = 8,
              .features = 4,
              .log2_hashmap_size = options.table,
              .base_resolution = 8,
              .per_level_scale = 1.6},
        table_((scope / "grid").parameter("table", {hash_grid_size(3, grid_)}, uniform(-1e-4F, 1e-4F))) {
    std::int64_t in = grid_.levels * grid_.features;
    for (const char* layer : {"hidden1", "hidden2"}) {
      add_layer(scope / layer, in, options.width, he(in));
      in = options.width;
    }
    add_layer(scope / "distance", in, 1, glorot(in, 1));
  }

  Tensor operator()(Tensor positions) const {
    Tensor x = hash_grid(positions, table_, grid_);
    for (std::size_t i = 0; i + 1 < layers_.size(); ++i) x = relu(linear(x, layers_[i].weight, layers_[i].bias));
    return linear(x, layers_.back().weight, layers_.back().bias);
  }

 private:
  struct Layer {
    Tensor weight;
    Tensor bias;
  };
  void add_layer(const Scope& scope, std::int64_t in, std::int64_t out, Initializer weights) {
    layers_.push_back(
        {scope.parameter("weight", {in, out}, weights, {1, 0}), scope.parameter("bias", {out}, constant(0))});
  }

  HashGridOptions grid_;
  Tensor table_;
  std::vector<Layer> layers_;
};

/// Runs a predictor of `batch` rows over any number of them; inputs and result are {n, ...}, row by row.
std::vector<float> run_all(Predictor& predictor, const std::map<std::string, const std::vector<float>*>& inputs,
                           std::size_t rows, std::size_t columns, std::size_t batch) {
  std::vector<float> all;
  for (std::size_t first = 0; first < rows; first += batch) {
    const std::size_t count = std::min(batch, rows - first);
    std::map<std::string, std::vector<float>> parts;
    std::map<std::string, Values> values;
    for (const auto& [name, whole] : inputs) {
      const std::size_t width = whole->size() / rows;
      std::vector<float>& part = parts[name];
      part.assign(batch * width, 0.5F);
      std::copy_n(whole->begin() + static_cast<std::ptrdiff_t>(first * width), count * width, part.begin());
      values[name] = std::span<const float>(part);
    }
    const std::vector<float> some = predictor.run(values);
    all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count * columns));
  }
  return all;
}

/// Positions in the unit cube, and their true distances.
struct Points {
  std::vector<float> positions;  ///< {n, 3}
  std::vector<float> distances;  ///< {n}
};

std::vector<float> distances_of(Predictor& predictor, const std::vector<float>& positions) {
  return run_all(predictor, {{"positions", &positions}}, positions.size() / 3, 1, at_once);
}

/// `count` points, of which `share` are near the surface.
Points draw_points(Predictor& truth, std::int64_t count, double share, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Points points;
  const auto near = static_cast<std::int64_t>(share * static_cast<double>(count));
  std::int64_t found = 0;
  std::int64_t others = 0;
  while (found + others < count && !interrupted()) {
    std::vector<float> positions(static_cast<std::size_t>(3 * at_once * 4));
    for (float& x : positions) x = static_cast<float>(random() >> 40) * 0x1p-24F;
    const std::vector<float> distances = distances_of(truth, positions);
    for (std::size_t i = 0; i < distances.size(); ++i) {
      std::int64_t& kind = std::abs(distances[i]) < near_surface ? found : others;
      if (kind >= (&kind == &found ? near : count - near)) continue;
      kind++;
      points.distances.push_back(distances[i]);
      points.positions.insert(points.positions.end(), &positions[3 * i], &positions[3 * i] + 3);
    }
  }
  return points;
}

/// What a predictor of shown() gave for each pixel.
using Shown = std::vector<float>;

Image image_of(const Shown& pixels, std::int64_t size) {
  Image image{size, size, {}};
  for (std::size_t i = 0; i < pixels.size() / 8; ++i) {
    for (std::size_t c = 0; c < 3; ++c) image.pixels.push_back(samples::byte_of(pixels[8 * i + c]));
  }
  return image;
}

/// How a learned shape differs from the true one.
struct Errors {
  double distance = 0;  ///< the mean, of positions near the surface, in parts of the cube's edge
  double depth = 0;     ///< the mean, of pixels that show a surface in both pictures, likewise
  double degrees = 0;   ///< the mean angle between normals, of the same pixels
  double outline = 0;   ///< the part of the pixels that show a surface in one picture only
};

Errors compare(const Shown& got, const Shown& wanted) {
  Errors errors;
  double both = 0;
  double one = 0;
  for (std::size_t i = 0; i < got.size(); i += 8) {
    const bool hit = got[i + 3] >= 0;
    const bool wanted_hit = wanted[i + 3] >= 0;
    one += hit != wanted_hit ? 1 : 0;
    if (!hit || !wanted_hit) continue;
    both++;
    errors.depth += std::abs(got[i + 3] - wanted[i + 3]);
    double cosine = 0;
    for (std::size_t c = 4; c < 7; ++c) cosine += got[i + c] * wanted[i + c];
    errors.degrees += std::acos(std::clamp(cosine, -1.0, 1.0)) * 180 / std::numbers::pi;
  }
  errors.depth /= std::max(both, 1.0);
  errors.degrees /= std::max(both, 1.0);
  errors.outline = one / (static_cast<double>(got.size()) / 8);
  return errors;
}

/// Looks at what a distance makes of the rays.
class Viewer {
 public:
  explicit Viewer(const samples::Rays& rays) : rays_(rays) {}

  Shown view(Predictor& predictor) const {
    return run_all(predictor, {{"rays", &rays_.rays}, {"directions", &rays_.directions}}, rays_.rays.size() / 4, 8,
                   static_cast<std::size_t>(rays_of_run(rays_)));
  }

  /// For predictors of such rays.
  static Tensor output(Graph& graph, const samples::Rays& rays, const samples::Distance& distance) {
    const std::int64_t n = rays_of_run(rays);
    return samples::shown(graph.input("rays", {n, 4}), graph.input("directions", {n, 3}), distance);
  }

 private:
  static std::int64_t rays_of_run(const samples::Rays& rays) {
    return std::min(at_once, static_cast<std::int64_t>(rays.rays.size() / 4));
  }

  const samples::Rays& rays_;
};

/// Trains, and keeps what is to be shown.
class Fit {
 public:
  Fit(const Trainer& trainer, const Options& options, const samples::Rays& rays, Shown wanted, const Points& asked)
      : options_(options), viewer_(rays), wanted_(std::move(wanted)), asked_(asked) {
    Graph pictures;
    const Network network(pictures.root(), options);
    picture_ =
        std::make_unique<Predictor>(Predictor::compile(trainer, pictures, Viewer::output(pictures, rays, network)));
    Graph distances;
    const Network same(distances.root(), options);
    const Tensor positions = distances.input("positions", {at_once, 3});
    distance_ = std::make_unique<Predictor>(Predictor::compile(trainer, distances, same(positions)));
    panels_.push_back({image_of(wanted_, options.size), "the shape"});
  }

  void run(Trainer& trainer) {
    samples::say("  step    seconds   distance error   depth error   normals off by   other outline\n");
    while (step_ < options_.steps && !interrupted()) {
      const auto start = std::chrono::steady_clock::now();
      trainer.step();
      step_++;
      const bool last = step_ == options_.steps || interrupted();
      const bool looked_at = last || step_ == options_.steps / 20 || step_ == options_.steps / 5;
      if (looked_at) trainer.finish();
      seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (looked_at) look();
    }
  }

  bool has_results() const { return step_ > 0; }
  const std::vector<samples::Panel>& panels() const { return panels_; }
  nlohmann::json report() const {
    return {{"steps", step_},         {"seconds", seconds_},        {"distance_error", errors_.distance},
            {"depth", errors_.depth}, {"degrees", errors_.degrees}, {"outline", errors_.outline}};
  }

 private:
  void look() {
    const Shown got = viewer_.view(*picture_);
    errors_ = compare(got, wanted_);
    const std::vector<float> distances = distances_of(*distance_, asked_.positions);
    for (std::size_t i = 0; i < distances.size(); ++i) errors_.distance += std::abs(distances[i] - asked_.distances[i]);
    errors_.distance /= static_cast<double>(distances.size());
    samples::say("{:6}  {:9.1f}   {:14.5f}   {:11.5f}   {:10.1f} deg   {:12.2f}%\n", step_, seconds_, errors_.distance,
                 errors_.depth, errors_.degrees, 100 * errors_.outline);
    panels_.push_back({image_of(got, options_.size), fmt::format("{} steps: {:.5f}", step_, errors_.distance)});
  }

  const Options& options_;
  Viewer viewer_;
  Shown wanted_;
  const Points& asked_;
  std::unique_ptr<Predictor> picture_;
  std::unique_ptr<Predictor> distance_;
  std::int64_t step_ = 0;
  double seconds_ = 0;
  Errors errors_;
  std::vector<samples::Panel> panels_;
};

Predictor true_predictor(const Device& device) {
  Graph graph;
  return Predictor::compile(device, graph, samples::true_distance(graph.input("positions", {at_once, 3})));
}

Predictor true_picture(const Device& device, const samples::Rays& rays) {
  Graph graph;
  return Predictor::compile(device, graph, Viewer::output(graph, rays, samples::true_distance));
}

/// Errors count relative to the distance, so that surfaces are learned best: Mueller et al. 2022.
std::vector<float> weights_of(const std::vector<float>& distances) {
  std::vector<float> weights;
  for (const float distance : distances) weights.push_back(0.02F / (std::abs(distance) + 0.01F));
  return weights;
}

void train(const Options& options, const Device& device) {
  Predictor truth = true_predictor(device);
  const Points points = draw_points(truth, options.points, 0.75, options.seed);
  const Points asked = draw_points(truth, at_once, 1, options.seed + 1);
  const samples::Rays rays = samples::camera(options.size);
  Predictor picture = true_picture(device, rays);
  if (interrupted()) return;

  const std::vector<float> weights = weights_of(points.distances);
  const Dataset set = Dataset::of("points", {Field::borrow<float>("positions", {3}, points.positions),
                                             Field::borrow<float>("distances", {1}, points.distances),
                                             Field::borrow<float>("weights", {1}, weights)});
  const std::int64_t batch = std::min(options.batch, options.points);
  Graph graph;
  const Tensor positions = graph.input("positions", {batch, 3});
  const Tensor distances = graph.input("distances", {batch, 1});
  const Tensor weight = graph.input("weights", {batch, 1});
  const Network network(graph.root(), options);
  Trainer trainer =
      Trainer::compile(device, graph,
                       {.loss = mean(mul(abs(sub(network(positions), distances)), weight)),
                        .optimizer = samples::grid_adam(options, options.steps, 0.02F),
                        .precision = Precision::level(options.precision),
                        .seed = options.seed,
                        .feed = Feed{.inputs = {{.input = positions}, {.input = distances}, {.input = weight}}},
                        .training_set = &set});
  samples::say("{} x {} pixels, {} parameters on {}\n", options.size, options.size, graph.parameter_count(),
               device.info().name);
  Fit fit(trainer, options, rays, Viewer(rays).view(picture), asked);
  fit.run(trainer);
  if (!fit.has_results()) return;  // interrupted
  samples::write_panels(options.out, fit.panels(), 2);
  samples::write_results(options, fit.report(), device);
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--size", options.size, "Height and width of the pictures")
      ->transform(samples::whole_number(16, 2048))
      ->capture_default_str();
  samples::add_grid_options(app, options);
  app.add_option("--points", options.points, "Positions to learn from; three quarters are near the surface")
      ->transform(samples::whole_number(1024, 1 << 24))
      ->capture_default_str();
  app.add_option("--batch-size", options.batch, "Positions of a step")
      ->transform(samples::whole_number(1, 1 << 22))
      ->capture_default_str();
  samples::add_graphics_options(app, options, "a fiftieth", "the positions");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a small network to be a shape, a signed distance function, and shows it by sphere tracing.");
  Options options;
  options.steps = 300;
  options.width = 32;
  options.out = "sdf_fit.png";
  add_options(app, options);
  return samples::run_program(app, argc, argv, [&] {
    return samples::run_graphics(options, {}, {}, [&](const Device& device) { train(options, device); });
  });
}
