#include "samples/graphics/sphere_tracing.h"

#include <sdf_around.spirv.h>
#include <sdf_march.spirv.h>
#include <sdf_shade.spirv.h>
#include <sdf_start.spirv.h>
#include <sdf_surface.spirv.h>
#include <sdf_true.spirv.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "samples/graphics/kernel_operator.h"

using namespace halfstep;

namespace samples {
namespace {

using Vector = std::array<double, 3>;

constexpr int march_steps = 40;
constexpr int light_steps = 16;

/// Rays as they are after some steps.
struct Marched {
  Tensor states;     ///< {n, 4}; see sdf_march.comp
  Tensor positions;  ///< {n, 3}
};

Marched march(Tensor rays, Tensor directions, const Distance& distance, int steps) {
  const std::int64_t n = rays.dim(0);
  const std::vector<Tensor> start = apply(
      {.name = "sdf_start", .spirv = halfstep_kernels::sdf_start(), .outputs = {{n, 3}, {n, 4}}, .count = n}, {rays});
  Marched now{.states = start[1], .positions = start[0]};
  for (int step = 0; step < steps; ++step) {
    const std::vector<Tensor> next =
        apply({.name = "sdf_march", .spirv = halfstep_kernels::sdf_march(), .outputs = {{n, 4}, {n, 3}}, .count = n},
              {rays, directions, now.states, distance(now.positions)});
    now = {next[0], next[1]};
  }
  return now;
}

Vector normalised(const Vector& v) {
  const double length = std::hypot(v[0], v[1], v[2]);
  return {v[0] / length, v[1] / length, v[2] / length};
}

Vector cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

void add_ray(Rays& all, const Vector& eye, const Vector& direction) {
  double enter = 0;
  double leave = 10;
  for (std::size_t i = 0; i < 3; ++i) {
    const double a = (0 - eye[i]) / direction[i];
    const double b = (1 - eye[i]) / direction[i];
    enter = std::max(enter, std::min(a, b));
    leave = std::min(leave, std::max(a, b));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    all.rays.push_back(static_cast<float>(std::clamp(eye[i] + enter * direction[i], 0.0, 1.0)));
    all.directions.push_back(static_cast<float>(direction[i]));
  }
  all.rays.push_back(static_cast<float>(std::max(leave - enter, 0.0)));
}

}  // namespace

Tensor true_distance(Tensor positions) {
  const std::int64_t n = positions.dim(0);
  return apply({.name = "sdf_true", .spirv = halfstep_kernels::sdf_true(), .outputs = {{n, 1}}, .count = n},
               {positions})[0];
}

Tensor shown(Tensor rays, Tensor directions, const Distance& distance) {
  const std::int64_t n = rays.dim(0);
  const Marched end = march(rays, directions, distance, march_steps);
  const Tensor around =
      apply({.name = "sdf_around", .spirv = halfstep_kernels::sdf_around(), .outputs = {{4 * n, 3}}, .count = 4 * n},
            {end.positions})[0];
  const Tensor corners = reshape(distance(around), {n, 4});
  const std::vector<Tensor> surface = apply({.name = "sdf_surface",
                                             .spirv = halfstep_kernels::sdf_surface(),
                                             .outputs = {{n, 4}, {n, 3}, {2 * n, 3}},
                                             .count = n},
                                            {end.positions, corners});
  const Marched light = march(surface[0], surface[1], distance, light_steps);
  const Tensor above = reshape(distance(surface[2]), {n, 2});
  return apply({.name = "sdf_shade", .spirv = halfstep_kernels::sdf_shade(), .outputs = {{n, 8}}, .count = n},
               {rays, directions, end.states, corners, above, light.states})[0];
}

Rays camera(std::int64_t size) {
  const Vector eye{1.42, 1.12, 1.86};
  const Vector target{0.5, 0.38, 0.5};
  constexpr double zoom = 2.85;
  const Vector ahead = normalised({target[0] - eye[0], target[1] - eye[1], target[2] - eye[2]});
  const Vector right = normalised(cross(ahead, {0, 1, 0}));
  const Vector up = cross(right, ahead);
  Rays all;
  for (std::int64_t row = 0; row < size; ++row) {
    for (std::int64_t column = 0; column < size; ++column) {
      const double x = (2 * (static_cast<double>(column) + 0.5) / static_cast<double>(size) - 1) / zoom;
      const double y = (1 - 2 * (static_cast<double>(row) + 0.5) / static_cast<double>(size)) / zoom;
      Vector direction{};
      for (std::size_t i = 0; i < 3; ++i) direction[i] = ahead[i] + x * right[i] + y * up[i];
      add_ray(all, eye, normalised(direction));
    }
  }
  return all;
}

}  // namespace samples
