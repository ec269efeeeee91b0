#include <halfstep/halfstep.h>

#include <png.h>

#include <cmath>

#include "samples/common/canvas.h"
#include "samples/watch/drawing.h"

namespace samples {
namespace {

constexpr int scale = 2;  ///< pixels of the file for each of the drawing

Colour colour_of(Ink ink) {
  constexpr Colour colours[] = {{255, 255, 255}, {31, 36, 48},  {93, 102, 117},  {227, 230, 236},
                                {31, 111, 196},  {208, 86, 43}, {185, 213, 241}, {243, 205, 189}};
  return colours[static_cast<int>(ink)];
}

Colour mixed(Colour from, Colour to, double strength) {
  const auto one = [&](int a, int b) { return static_cast<std::uint8_t>(std::lround(a + (b - a) * strength)); };
  return {one(from.red, to.red), one(from.green, to.green), one(from.blue, to.blue)};
}

class PngDrawing : public Drawing {
 public:
  PngDrawing(int width, int height) : canvas_(scale * width, scale * height, colour_of(Ink::background)) {}

  void line(const std::vector<Point>& points, Ink ink, double width) override {
    for (std::size_t i = 1; i < points.size(); ++i) one(points[i - 1], points[i], ink, width);
  }
  void segments(const std::vector<Point>& points, Ink ink, double width) override {
    for (std::size_t i = 1; i < points.size(); i += 2) one(points[i - 1], points[i], ink, width);
  }
  void dot(Point centre, Ink ink) override { one(centre, centre, ink, 6); }

  void rectangle(Point corner, double width, double height, Ink ink, double strength) override {
    const auto pixels = [](double value) { return static_cast<int>(std::lround(scale * value)); };
    canvas_.rectangle(pixels(corner.x), pixels(corner.y), pixels(width), pixels(height),
                      mixed(colour_of(Ink::background), colour_of(ink), strength));
  }

  void text(Point at, std::string_view text, Ink ink, Anchor anchor, int /*size*/) override {
    const int width = Canvas::letter * static_cast<int>(text.size());
    const int before = anchor == Anchor::start ? 0 : (anchor == Anchor::middle ? width / 2 : width);
    canvas_.text(static_cast<int>(std::lround(scale * at.x)) - before, static_cast<int>(std::lround(scale * at.y)) - 14,
                 text, colour_of(ink));
  }

  std::string file() const override {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(canvas_.width());
    image.height = static_cast<png_uint_32>(canvas_.height());
    image.format = PNG_FORMAT_RGB;
    png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
    std::string text(bytes, '\0');
    if (png_image_write_to_memory(&image, text.data(), &bytes, 0, canvas_.pixels().data(), 0, nullptr) == 0) {
      halfstep::fail(halfstep::ErrorCode::out_of_memory, "png", image.message);
    }
    text.resize(bytes);
    return text;
  }

 private:
  void one(Point from, Point to, Ink ink, double width) {
    canvas_.stroke(scale * from.x, scale * from.y, scale * to.x, scale * to.y, scale * width, colour_of(ink));
  }

  Canvas canvas_;
};

}  // namespace

std::unique_ptr<Drawing> png_drawing(int width, int height) {
  return std::make_unique<PngDrawing>(width, height);
}

}  // namespace samples
