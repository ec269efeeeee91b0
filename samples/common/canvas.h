#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace samples {

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};

/// An image to draw on: pixels {height, width, 3}. Drawing outside of it is clipped.
class Canvas {
 public:
  /// Height of a line of text and advance of a letter, spacing included, in pixels.
  static constexpr int line = 18;
  static constexpr int letter = 12;

  Canvas(int width, int height, Colour background);

  void rectangle(int x, int y, int width, int height, Colour colour);
  /// Draws a line from {x0, y0} to {x1, y1} with smooth edges and round ends.
  void stroke(double x0, double y0, double x1, double y1, double width, Colour colour);
  /// Draws text with its upper left corner at {x, y}; a character that is not printable ASCII becomes a box.
  void text(int x, int y, std::string_view text, Colour colour);
  /// Draws an image {height, width, channels} of bytes, grey or RGB, with each pixel `scale` wide and high.
  void image(int x, int y, const std::uint8_t* bytes, int height, int width, int channels, int scale);

  int width() const { return width_; }
  int height() const { return height_; }
  const std::vector<std::uint8_t>& pixels() const { return pixels_; }

 private:
  int width_;
  int height_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace samples
