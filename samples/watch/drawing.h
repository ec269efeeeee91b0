#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace samples {

struct Point {
  double x = 0;
  double y = 0;
};

/// What things are drawn in. An SVG file chooses light or dark colours as its reader's system does; a PNG has the light
/// ones.
enum class Ink { background, text, muted, grid, first, second, first_light, second_light };
enum class Anchor { start, middle, end };

/// A picture of lines and text, in pixels from the upper left corner.
class Drawing {
 public:
  Drawing() = default;
  Drawing(const Drawing&) = delete;
  Drawing& operator=(const Drawing&) = delete;
  virtual ~Drawing() = default;

  /// A line through all points.
  virtual void line(const std::vector<Point>& points, Ink ink, double width) = 0;
  /// Lines between the first two points, the next two, and so on.
  virtual void segments(const std::vector<Point>& points, Ink ink, double width) = 0;
  virtual void dot(Point centre, Ink ink) = 0;
  /// A filled rectangle: the background at `strength` 0, the ink at 1.
  virtual void rectangle(Point corner, double width, double height, Ink ink, double strength) = 0;
  /// Text whose baseline is at `at`. `size` is small, 12, or large, 15.
  virtual void text(Point at, std::string_view text, Ink ink, Anchor anchor = Anchor::start, int size = 12) = 0;
  /// The contents of a file with the picture.
  virtual std::string file() const = 0;
};

std::unique_ptr<Drawing> svg_drawing(int width, int height);
std::unique_ptr<Drawing> png_drawing(int width, int height);

/// Text as it stands in XML.
std::string escaped(std::string_view text);
/// The end of a name, of at most `letters`: "...attention/self/query".
std::string shortened(const std::string& name, std::size_t letters);

}  // namespace samples
