#pragma once

#include <halfstep/halfstep.h>

#include <functional>
#include <vector>

/// Shapes that are shown by their signed distances, in the unit cube. The kernels are in samples/shaders.
namespace samples {

using Distance = std::function<halfstep::Tensor(halfstep::Tensor)>;  ///< {n, 1} of positions {n, 3}

/// Those of sdf_scene.glsl.
halfstep::Tensor true_distance(halfstep::Tensor positions);

/// What rays show, {n, 8}: the colour; the length of the ray to the surface, or -1 where it misses; the normal there;
/// and 0. `rays` {n, 4} have where they begin, in the cube, and their length in it; `directions` {n, 3} have length 1.
halfstep::Tensor shown(halfstep::Tensor rays, halfstep::Tensor directions, const Distance& distance);

/// The rays of a picture's pixels.
struct Rays {
  std::vector<float> rays;        ///< {n, 4}
  std::vector<float> directions;  ///< {n, 3}
};

/// Of a camera that sees the cube from outside, {size, size} pixels.
Rays camera(std::int64_t size);

}  // namespace samples
