#include "samples/graphics/landscape.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace samples {
namespace {

using Rgb = std::array<double, 3>;

Rgb mix(const Rgb& a, const Rgb& b, double t) {
  t = std::clamp(t, 0.0, 1.0);
  return {a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t};
}

double smooth(double low, double high, double x) {
  const double t = std::clamp((x - low) / (high - low), 0.0, 1.0);
  return t * t * (3 - 2 * t);
}

/// A number from 0 to 1 for each pair of whole numbers.
double random_at(std::int64_t x, std::int64_t y) {
  auto h = static_cast<std::uint64_t>(x * 374761393 + y * 668265263);
  h = (h ^ (h >> 13)) * 1274126177;
  h ^= h >> 16;
  return static_cast<double>(h & 0xFFFFFF) / 0x1000000;
}

double noise(double x, double y) {
  const double left = std::floor(x);
  const double top = std::floor(y);
  const double u = smooth(0, 1, x - left);
  const double v = smooth(0, 1, y - top);
  const auto at = [&](int dx, int dy) {
    return random_at(static_cast<std::int64_t>(left) + dx, static_cast<std::int64_t>(top) + dy);
  };
  return std::lerp(std::lerp(at(0, 0), at(1, 0), u), std::lerp(at(0, 1), at(1, 1), u), v);
}

/// Noise of `octaves` sizes, from 0 to 1.
double fractal(double x, double y, int octaves) {
  double sum = 0;
  double size = 0.5;
  for (int i = 0; i < octaves; ++i, size /= 2, x *= 2.03, y *= 2.03) sum += size * noise(x + 17 * i, y - 31 * i);
  return sum;
}

constexpr double shore = 0.74;  ///< where the lake begins; y is 0 at the top and 1 at the bottom
constexpr double sun_x = 0.66;
constexpr double sun_y = 0.47;

Rgb sky(double x, double y) {
  const Rgb night{0.07, 0.09, 0.24};
  const Rgb violet{0.42, 0.26, 0.50};
  const Rgb orange{0.98, 0.62, 0.34};
  Rgb colour = mix(mix(night, violet, y / 0.36), orange, smooth(0.26, 0.62, y));
  const double distance = std::hypot(x - sun_x, y - sun_y);
  colour = mix(colour, {1, 0.86, 0.58}, 0.75 * std::exp(-distance * 6));
  const double cloud = fractal(x * 3 + 5, y * 14, 6) + 0.1 * std::sin(y * 21 + x * 3);
  colour = mix(colour, mix({0.36, 0.22, 0.40}, {1, 0.72, 0.55}, 1.6 * y), 0.8 * smooth(0.5, 0.72, cloud));
  const double star = random_at(static_cast<std::int64_t>(x * 170), static_cast<std::int64_t>(y * 170));
  const double within = std::hypot(std::fmod(x * 170, 1.0) - 0.5, std::fmod(y * 170, 1.0) - 0.5);
  if (star > 0.985 && cloud < 0.5) colour = mix(colour, {1, 1, 0.95}, (1 - y / 0.33) * smooth(0.35, 0.1, within));
  return mix(colour, {1, 0.95, 0.8}, smooth(0.062, 0.058, distance));
}

/// A chain of mountains: where it begins above, and its colour.
struct Ridge {
  double base;
  double height;
  double frequency;
  Rgb colour;
};

constexpr std::array<Ridge, 4> ridges{{{0.60, 0.24, 2.4, {0.56, 0.36, 0.50}},
                                       {0.66, 0.20, 3.4, {0.38, 0.25, 0.42}},
                                       {0.71, 0.15, 5.1, {0.23, 0.17, 0.33}},
                                       {0.75, 0.10, 8.3, {0.11, 0.10, 0.22}}}};

Rgb land(double x, double y) {
  Rgb colour = sky(x, y);
  for (std::size_t i = 0; i < ridges.size(); ++i) {
    const Ridge& ridge = ridges.at(i);
    const double row = 7.7 * static_cast<double>(i);
    const double top = ridge.base - ridge.height * (2 * fractal(x * ridge.frequency + row, row, 9) - 0.75);
    if (y < top) continue;
    const double light = fractal(x * 40 + row, y * 60, 4) - 0.45;
    const double snow = i == 0 ? smooth(0.035, 0.015, y - top + 0.03 * light) : 0;
    colour = mix(ridge.colour, {0.98, 0.80, 0.72}, 0.35 * light + 0.55 * snow);
    colour = mix(colour, {0.9, 0.6, 0.5}, 0.4 * smooth(0.02, 0.18, y - top) * (1 - 0.25 * static_cast<double>(i)));
  }
  return colour;
}

/// How much of {x, y} firs cover: a trunk, and boughs that widen downwards in steps.
double firs(double x, double y) {
  double covered = 0;
  for (int i = 0; i < 26; ++i) {
    const double place = (i + 0.8 * random_at(i, 3)) / 26;
    if (std::abs(place - 0.55) < 0.17) continue;  // the view of the lake
    const double height = 0.10 + 0.16 * random_at(i, 5) * (0.4 + 2 * std::abs(place - 0.5));
    const double foot = 0.97 + 0.05 * random_at(i, 9);
    const double up = (foot - y) / height;
    if (up < 0 || up > 1) continue;
    const double bough = (1 - up) * (0.62 + 0.38 * (1 - std::fmod(up * 9, 1.0)));
    const double width = 0.2 * height * bough * (0.85 + 0.3 * noise(x * 400, y * 300));
    const double trunk = up < 0.12 ? 0.02 * height : 0;
    if (std::abs(x - place) < std::max(width, trunk)) covered = 1;
  }
  return covered;
}

Rgb colour_at(double x, double y) {
  Rgb colour = y < shore ? land(x, y) : Rgb{};
  if (y >= shore) {
    const double depth = (y - shore) / (1 - shore);
    const double ripple = (fractal(x * 9, y * 130 / (0.4 + depth), 4) - 0.47) * (0.01 + 0.05 * depth);
    colour = mix(land(x + ripple, 2 * shore - y + 3 * ripple), {0.07, 0.10, 0.22}, 0.25 + 0.35 * depth);
    const double glint = smooth(0.53, 0.66, fractal(x * 30, y * 260, 3)) * std::exp(-30 * std::pow(x - sun_x, 2));
    colour = mix(colour, {1, 0.85, 0.6}, 0.8 * glint);
  }
  return mix(colour, {0.035, 0.04, 0.075}, firs(x, y));
}

}  // namespace

halfstep::Image draw_landscape(std::int64_t side) {
  constexpr int samples = 3;  // of a pixel, along each axis
  halfstep::Image image{side, side, {}};
  for (std::int64_t row = 0; row < side; ++row) {
    for (std::int64_t column = 0; column < side; ++column) {
      Rgb sum{};
      for (int i = 0; i < samples * samples; ++i) {
        const double x = static_cast<double>(column) + (i % samples + 0.5) / samples;
        const double y = static_cast<double>(row) + (i / samples + 0.5) / samples;
        const Rgb colour = colour_at(x / static_cast<double>(side), y / static_cast<double>(side));
        for (std::size_t c = 0; c < 3; ++c) sum.at(c) += colour.at(c) / (samples * samples);
      }
      for (const double c : sum) {
        image.pixels.push_back(static_cast<std::uint8_t>(std::lround(255 * std::clamp(c, 0.0, 1.0))));
      }
    }
  }
  return image;
}

}  // namespace samples
