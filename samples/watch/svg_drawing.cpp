#include <fmt/format.h>

#include <iterator>

#include "samples/watch/drawing.h"

namespace samples {
namespace {

/// The colours of each Ink, in light and in dark.
struct Colours {
  const char* name;
  const char* light;
  const char* dark;
};
constexpr Colours inks[] = {{"background", "#ffffff", "#14171d"},  {"text", "#1f2430", "#e8ebf1"},
                            {"muted", "#5d6675", "#9aa4b5"},       {"grid", "#e3e6ec", "#2a303b"},
                            {"first", "#1f6fc4", "#62a8f0"},       {"second", "#d0562b", "#f08a60"},
                            {"first_light", "#b9d5f1", "#24486e"}, {"second_light", "#f3cdbd", "#6b3a27"}};

/// Rules that every reader of SVG knows, and dark colours for those that know media queries.
std::string svg_style() {
  std::string light;
  std::string dark;
  const auto rule = [](std::string& to, const Colours& ink, const char* colour) {
    fmt::format_to(std::back_inserter(to), "path.{0}{{stroke:{1}}}text.{0},circle.{0},rect.{0}{{fill:{1}}}\n", ink.name,
                   colour);
  };
  for (const Colours& ink : inks) {
    rule(light, ink, ink.light);
    rule(dark, ink, ink.dark);
  }
  return fmt::format(
      "<style>\npath{{fill:none;stroke-linejoin:round;stroke-linecap:round}}\n"
      "text{{font-family:system-ui,'Segoe UI',Helvetica,Arial,sans-serif}}\n"
      "{}@media (prefers-color-scheme:dark){{\n{}}}\n</style>\n",
      light, dark);
}

const char* name_of(Ink ink) {
  return inks[static_cast<int>(ink)].name;
}

const char* name_of(Anchor anchor) {
  constexpr const char* names[] = {"start", "middle", "end"};
  return names[static_cast<int>(anchor)];
}

class SvgDrawing : public Drawing {
 public:
  SvgDrawing(int width, int height)
      : text_(fmt::format("<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}'>\n"
                          "{2}<rect width='{0}' height='{1}' class='background'/>\n",
                          width, height, svg_style())) {}

  void line(const std::vector<Point>& points, Ink ink, double width) override {
    path(points, points.size(), ink, width);
  }
  void segments(const std::vector<Point>& points, Ink ink, double width) override { path(points, 2, ink, width); }

  void dot(Point centre, Ink ink) override {
    fmt::format_to(std::back_inserter(text_), "<circle cx='{:.1f}' cy='{:.1f}' r='3' class='{}'/>\n", centre.x,
                   centre.y, name_of(ink));
  }

  void rectangle(Point corner, double width, double height, Ink ink, double strength) override {
    fmt::format_to(std::back_inserter(text_), "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' class='{}'",
                   corner.x, corner.y, width, height, name_of(ink));
    if (strength < 1) fmt::format_to(std::back_inserter(text_), " opacity='{:.2f}'", strength);
    text_ += "/>\n";
  }

  void text(Point at, std::string_view text, Ink ink, Anchor anchor, int size) override {
    fmt::format_to(std::back_inserter(text_),
                   "<text x='{:.1f}' y='{:.1f}' font-size='{}' text-anchor='{}' class='{}'{}>{}</text>\n", at.x, at.y,
                   size, name_of(anchor), name_of(ink), size > 12 ? " font-weight='600'" : "", escaped(text));
  }

  std::string file() const override { return text_ + "</svg>\n"; }

 private:
  /// Lines through points, a new one after every `each`.
  void path(const std::vector<Point>& points, std::size_t each, Ink ink, double width) {
    if (points.empty()) return;
    text_ += "<path d='";
    for (std::size_t i = 0; i < points.size(); ++i) {
      fmt::format_to(std::back_inserter(text_), "{}{:.1f},{:.1f}", i % each == 0 ? "M" : "L", points[i].x, points[i].y);
    }
    fmt::format_to(std::back_inserter(text_), "' class='{}' stroke-width='{}'/>\n", name_of(ink), width);
  }

  std::string text_;
};

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
  }
  return result;
}

std::string shortened(const std::string& name, std::size_t letters) {
  return name.size() <= letters ? name : "..." + name.substr(name.size() - letters + 3);
}

std::unique_ptr<Drawing> svg_drawing(int width, int height) {
  return std::make_unique<SvgDrawing>(width, height);
}

}  // namespace samples
