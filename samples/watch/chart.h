#pragma once

#include <functional>
#include <string>
#include <vector>

#include "samples/watch/drawing.h"

namespace samples {

/// A curve: values by step, in order of steps. Values that are not finite are gaps.
struct Curve {
  std::string name;
  std::vector<Point> points;
  bool dots = false;  ///< few points, which are marked
};

/// Up to two curves over the same steps.
struct ChartPanel {
  std::string title;
  std::vector<Curve> curves;
  bool logarithmic = false;
  bool percent = false;  ///< values from 0 to 1

  bool empty() const;
};

/// Draws panels in two columns, below a title unless it is empty. Of many points, their means are drawn, before the
/// range that they have. `make` makes a drawing of a size.
std::string draw_panels(const std::string& title, const std::string& subtitle, const std::vector<ChartPanel>& panels,
                        const std::function<std::unique_ptr<Drawing>(int width, int height)>& make);

}  // namespace samples
