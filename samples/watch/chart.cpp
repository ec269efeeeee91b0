#include "samples/watch/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "samples/watch/fields.h"

namespace samples {
namespace {

constexpr double panel_width = 460;   ///< of a panel
constexpr double panel_height = 220;  ///< likewise
constexpr double panel_margin = 20;
constexpr double title_height = 64;
constexpr double area_left = 58;  ///< of the area of curves in a panel
constexpr double area_right = 12;
constexpr double area_top = 34;
constexpr double area_bottom = 26;
constexpr std::size_t most_curve_columns = 195;  ///< of points that are drawn of a curve

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

bool is_drawn(double value, bool logarithmic) {
  return std::abs(value) < 1e300 && (!logarithmic || value > 0);
}

/// 1, 2 or 5 times a power of ten: the least that divides `range` into at most `parts`.
double round_step(double range, double parts) {
  const double least = range / parts;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * 0.999) return factor * power;
  }
  return 10 * power;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size < 1e6 && size >= 1e4 && std::fmod(value, 1000) == 0) return fmt::format("{:.0f}k", value / 1000);
  if (size < 1e6 && size >= 1e4 && std::fmod(value, 1) == 0) return fmt::format("{:.0f}", value);
  if (size >= 1e6 && size < 1e9) return fmt::format("{:.3g}M", value / 1e6);
  return fmt::format("{:.4g}", value);
}

/// The axes of a panel: from values to pixels.
class Axes {
 public:
  Axes(const ChartPanel& panel, Range steps, Point corner) : panel_(panel), steps_(steps), corner_(corner) {
    for (const Curve& curve : panel.curves) {
      for (const Point& point : curve.points) {
        if (is_drawn(point.y, panel.logarithmic)) values_.add(scaled(point.y));
      }
    }
    const bool negative = panel.logarithmic || values_.low < 0;
    const double range = values_.high - values_.low;
    const bool flat = range <= 1e-9 * std::max(std::abs(values_.low), std::abs(values_.high));
    const double room = flat ? unit() : 0.06 * range;
    values_ = {values_.low - room, values_.high + room};
    if (values_.low < 0 && !negative) values_.low = 0;  // no room below 0 for what is never less
    if (panel.percent) values_ = {std::max(values_.low, 0.0), std::min(values_.high, 1.0)};
    if (steps_.high <= steps_.low) steps_.high = steps_.low + 1;
  }

  double x(double step) const {
    return corner_.x + area_left +
           (step - steps_.low) / (steps_.high - steps_.low) * (panel_width - area_left - area_right);
  }
  double y(double value) const { return y_scaled(scaled(value)); }

  void draw(Drawing& drawing) const {
    const auto level = [&](double at, double value) {
      const double place = y_scaled(at);
      drawing.segments({{corner_.x + area_left, place}, {corner_.x + panel_width - area_right, place}}, Ink::grid, 1);
      drawing.text({corner_.x + area_left - 7, place + 4}, label(value), Ink::muted, Anchor::end);
    };
    for (const double at : ticks()) level(at, panel_.logarithmic ? std::pow(10, at) : at);
    const double step = std::max(1.0, round_step(steps_.high - steps_.low, 5));
    for (double at = std::ceil(steps_.low / step) * step; at <= steps_.high; at += step) {
      drawing.text({x(at), corner_.y + panel_height - 8}, short_number(at), Ink::muted, Anchor::middle);
    }
  }

  std::string label(double value) const {
    return panel_.percent ? fmt::format("{:.4g}%", 100 * value) : short_number(value);
  }

 private:
  double scaled(double value) const { return panel_.logarithmic ? std::log10(value) : value; }
  double y_scaled(double at) const {
    return corner_.y + panel_height - area_bottom -
           (at - values_.low) / (values_.high - values_.low) * (panel_height - area_top - area_bottom);
  }
  /// Room above and below a curve that is flat.
  double unit() const {
    if (panel_.logarithmic) return 0.5;
    return values_.low != 0 ? 0.5 * std::abs(values_.low) : 1;
  }
  /// Three or more, where round numbers allow it.
  std::vector<double> ticks() const {
    const double range = values_.high - values_.low;
    constexpr double few_powers = 2.2;
    if (panel_.logarithmic && range < few_powers) return ticks_between_powers();
    std::vector<double> at;
    for (const double parts : {4.0, 6.0, 9.0}) {
      const double step = panel_.logarithmic ? std::max(1.0, round_step(range, parts)) : round_step(range, parts);
      at.clear();
      for (double value = std::ceil(values_.low / step) * step; value <= values_.high; value += step) {
        at.push_back(std::abs(value) < step * 1e-9 ? 0 : value);
      }
      if (at.size() >= 3) break;
    }
    return at;
  }
  /// 1, 2 and 5 times the powers of ten.
  std::vector<double> ticks_between_powers() const {
    std::vector<double> at;
    for (double power = std::floor(values_.low); power <= values_.high; ++power) {
      for (const double factor : {1.0, 2.0, 5.0}) at.push_back(power + std::log10(factor));
    }
    std::erase_if(at, [&](double value) { return value < values_.low || value > values_.high; });
    return at.size() >= 2 ? at : std::vector{values_.low, values_.high};
  }

  const ChartPanel& panel_;
  Range steps_;
  Point corner_;
  Range values_;
};

/// Points that share a column of pixels; a gap where none of them can be drawn.
struct Column {
  double x = 0;
  double sum = 0;
  double count = 0;
  Range range;
};

std::vector<Column> columns_of(const Curve& curve, bool logarithmic) {
  std::vector<Column> columns;
  const std::size_t each =
      std::max<std::size_t>(1, (curve.points.size() + most_curve_columns - 1) / most_curve_columns);
  for (std::size_t first = 0; first < curve.points.size(); first += each) {
    Column column;
    const std::size_t end = std::min(first + each, curve.points.size());
    for (std::size_t i = first; i < end; ++i) {
      const Point& point = curve.points[i];
      if (!is_drawn(point.y, logarithmic)) continue;
      column.x += point.x;
      column.sum += point.y;
      column.count += 1;
      column.range.add(point.y);
    }
    if (column.count > 0) column.x /= column.count;
    columns.push_back(column);
  }
  return columns;
}

void draw_curve(Drawing& drawing, const Axes& axes, const Curve& curve, bool logarithmic, bool second) {
  std::vector<Point> ranges;
  std::vector<std::vector<Point>> lines(1);  // with gaps between them
  for (const Column& column : columns_of(curve, logarithmic)) {
    if (column.count == 0) {
      if (!lines.back().empty()) lines.emplace_back();
      continue;
    }
    if (column.range.high > column.range.low) {
      ranges.push_back({axes.x(column.x), axes.y(column.range.low)});
      ranges.push_back({axes.x(column.x), axes.y(column.range.high)});
    }
    lines.back().push_back({axes.x(column.x), axes.y(column.sum / column.count)});
  }
  drawing.segments(ranges, second ? Ink::second_light : Ink::first_light, 2.2);
  const Ink ink = second ? Ink::second : Ink::first;
  for (const std::vector<Point>& means : lines) {
    drawing.line(means, ink, 2);
    if (!curve.dots && means.size() > 1) continue;
    for (const Point& mean : means) drawing.dot(mean, ink);
  }
}

void draw_panel(Drawing& drawing, const ChartPanel& panel, Range steps, Point corner) {
  const Axes axes(panel, steps, corner);
  drawing.text({corner.x, corner.y + 16}, panel.title, Ink::text, Anchor::start, 15);
  axes.draw(drawing);
  double end = corner.x + panel_width - area_right;
  for (std::size_t i = panel.curves.size(); i-- > 0;) {
    const Curve& curve = panel.curves[i];
    draw_curve(drawing, axes, curve, panel.logarithmic, i == 1);
    if (curve.points.empty()) continue;
    const double last = curve.points.back().y;
    const std::string legend = fmt::format("{} {}", curve.name, std::isfinite(last) ? axes.label(last) : not_finite);
    drawing.text({end, corner.y + 16}, legend, i == 1 ? Ink::second : Ink::first, Anchor::end);
    end -= 9.0 * static_cast<double>(legend.size()) + 12;
  }
}

}  // namespace

bool ChartPanel::empty() const {
  return std::ranges::none_of(curves, [&](const Curve& curve) {
    return std::ranges::any_of(curve.points, [&](const Point& point) { return is_drawn(point.y, logarithmic); });
  });
}

std::string draw_panels(const std::string& title, const std::string& subtitle, const std::vector<ChartPanel>& panels,
                        const std::function<std::unique_ptr<Drawing>(int width, int height)>& make) {
  std::vector<const ChartPanel*> drawn;
  Range steps;
  for (const ChartPanel& panel : panels) {
    if (panel.empty()) continue;
    drawn.push_back(&panel);
    for (const Curve& curve : panel.curves) {
      for (const Point& point : curve.points) steps.add(point.x);
    }
  }
  const double head = title.empty() ? 0 : title_height;
  const auto rows = static_cast<double>((drawn.size() + 1) / 2);
  const std::unique_ptr<Drawing> drawing = make(static_cast<int>(2 * panel_width + 3 * panel_margin),
                                                static_cast<int>(head + rows * (panel_height + panel_margin)));
  if (!title.empty()) {
    drawing->text({panel_margin, 30}, title, Ink::text, Anchor::start, 15);
    drawing->text({panel_margin, 50}, subtitle, Ink::muted);
  }
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const auto column = static_cast<double>(i % 2);
    const auto row = static_cast<double>(i / 2);
    draw_panel(*drawing, *drawn[i], steps,
               {panel_margin + column * (panel_width + panel_margin), head + row * (panel_height + panel_margin)});
  }
  return drawing->file();
}

}  // namespace samples
