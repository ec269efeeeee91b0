#include "samples/common/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace samples {
namespace {

/// Letters from space to ~, each of 8 rows of 5 pixels: the highest of 40 bits is the upper left pixel. Unused letters
/// are boxes.
constexpr std::array<std::uint64_t, 95> letters{
    0x0000000000, 0x2108420080, 0xfc6318c7e0, 0xfc6318c7e0, 0xfc6318c7e0, 0xce44444e60, 0x64a88ac9a0, 0x2100000000,
    0x1110841040, 0x4104211100, 0xfc6318c7e0, 0x0109f21000, 0x0000001088, 0x0001f00000, 0x0000003180, 0x0844444200,
    0x74675cc5c0, 0x23084211c0, 0x74426443e0, 0x744260c5c0, 0x11952f8840, 0xfc3c10c5c0, 0x3221e8c5c0, 0xf844422100,
    0x7462e8c5c0, 0x7462f08980, 0x0008001000, 0xfc6318c7e0, 0x1111041040, 0x003e0f8000, 0x4104111100, 0x7442220080,
    0xfc6318c7e0, 0x7463f8c620, 0xf463e8c7c0, 0x74610845c0, 0xf46318c7c0, 0xfc21e843e0, 0xfc21e84200, 0x746178c5e0,
    0x8c63f8c620, 0x71084211c0, 0x3884214980, 0x8ca98a4a20, 0x84210843e0, 0x8eeb58c620, 0x8c7359c620, 0x746318c5c0,
    0xf463e84200, 0x74631ac9a0, 0xf463ea4a20, 0x7c20e087c0, 0xf908421080, 0x8c6318c5c0, 0x8c6318a880, 0x8c635aee20,
    0x8c54454620, 0x8c54421080, 0xf8444443e0, 0x72108421c0, 0xfc6318c7e0, 0x70842109c0, 0xfc6318c7e0, 0x00000003e0,
    0xfc6318c7e0, 0x001c17c5e0, 0x843d18c7c0, 0x001f0841e0, 0x085f18c5e0, 0x001d1fc1e0, 0x3251e42100, 0x001f18bc2e,
    0x843d18c620, 0x20184211c0, 0x100c210a4c, 0x84254c5240, 0x61084211c0, 0x00355ad6a0, 0x003d18c620, 0x001d18c5c0,
    0x003d18fa10, 0x001f18bc21, 0x002d984200, 0x001f0707c0, 0x423c8424c0, 0x002318c5e0, 0x002318a880, 0x00235ad540,
    0x0022a22a20, 0x002318bc2e, 0x003e2223e0, 0xfc6318c7e0, 0xfc6318c7e0, 0xfc6318c7e0, 0x0013590000,
};
constexpr int letter_rows = 8;
constexpr int letter_columns = 5;
constexpr int pixel_size = 2;  ///< of a letter's pixels

}  // namespace

Canvas::Canvas(int width, int height, Colour background)
    : width_(width), height_(height), pixels_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3) {
  rectangle(0, 0, width, height, background);
}

void Canvas::rectangle(int x, int y, int width, int height, Colour colour) {
  for (int row = std::max(y, 0); row < std::min(y + height, height_); ++row) {
    for (int column = std::max(x, 0); column < std::min(x + width, width_); ++column) {
      const std::size_t at =
          3 * (static_cast<std::size_t>(row) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(column));
      pixels_[at] = colour.red;
      pixels_[at + 1] = colour.green;
      pixels_[at + 2] = colour.blue;
    }
  }
}

void Canvas::stroke(double x0, double y0, double x1, double y1, double width, Colour colour) {
  const double reach = width / 2 + 1;
  const double dx = x1 - x0;
  const double dy = y1 - y0;
  const double square = dx * dx + dy * dy;
  const auto limited = [](double value, int most) { return static_cast<int>(std::clamp<double>(value, 0, most)); };
  const int first = limited(std::min(x0, x1) - reach, width_);
  const int last = limited(std::max(x0, x1) + reach + 1, width_);
  for (int y = limited(std::min(y0, y1) - reach, height_); y < limited(std::max(y0, y1) + reach + 1, height_); ++y) {
    for (int x = first; x < last; ++x) {
      const double px = x + 0.5 - x0;
      const double py = y + 0.5 - y0;
      const double along = square > 0 ? std::clamp((px * dx + py * dy) / square, 0.0, 1.0) : 0;
      const double distance = std::hypot(px - along * dx, py - along * dy);
      const double share = std::clamp(width / 2 + 0.5 - distance, 0.0, 1.0);
      if (share == 0) continue;
      std::uint8_t* const pixel =
          &pixels_[3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x))];
      const std::uint8_t wanted[] = {colour.red, colour.green, colour.blue};
      for (int i = 0; i < 3; ++i)
        pixel[i] = static_cast<std::uint8_t>(std::lround(pixel[i] + share * (wanted[i] - pixel[i])));
    }
  }
}

void Canvas::text(int x, int y, std::string_view text, Colour colour) {
  for (const char c : text) {
    const bool known = c >= ' ' && c <= '~';
    const std::uint64_t bits = letters[static_cast<std::size_t>(known ? c - ' ' : '~' - ' ' - 1)];
    for (int i = 0; i < letter_rows * letter_columns; ++i) {
      const bool set = (bits >> (letter_rows * letter_columns - 1 - i) & 1) == 1;
      if (set)
        rectangle(x + i % letter_columns * pixel_size, y + i / letter_columns * pixel_size, pixel_size, pixel_size,
                  colour);
    }
    x += letter;
  }
}

void Canvas::image(int x, int y, const std::uint8_t* bytes, int height, int width, int channels, int scale) {
  for (int i = 0; i < height * width; ++i) {
    const std::uint8_t* pixel = bytes + static_cast<std::ptrdiff_t>(i) * channels;
    const Colour colour{pixel[0], pixel[channels / 2], pixel[channels - 1]};
    rectangle(x + i % width * scale, y + i / width * scale, scale, scale, colour);
  }
}

}  // namespace samples
