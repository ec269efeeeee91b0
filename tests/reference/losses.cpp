#include "reference/losses.h"

#include <halfstep/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace halfstep::reference {
namespace {

/// The mean of f(row of logits, label) over the rows that count; 0 if there are none.
template <typename F>
Array mean_of_rows(const Array& logits, const Array& labels, const F& f) {
  const std::size_t classes = logits.extent(1);
  double total = 0;
  double rows = 0;
  for (std::size_t row = 0; row < logits.extent(0); ++row) {
    if (labels.values[row] == ignored_label) continue;
    total += f(std::span(logits.values).subspan(row * classes, classes), static_cast<std::size_t>(labels.values[row]));
    rows += 1;
  }
  return Array({}, {rows == 0 ? 0 : total / rows});
}

}  // namespace

Array cross_entropy(const Array& logits, const Array& labels, double smoothing) {
  return mean_of_rows(logits, labels, [=](std::span<const double> row, std::size_t label) {
    if (label >= row.size()) return std::numeric_limits<double>::quiet_NaN();
    const double top = *std::ranges::max_element(row);
    double total = 0;
    for (const double logit : row) total += std::exp(logit - top);
    const double mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size());
    return std::log(total) + top - (1 - smoothing) * row[label] - smoothing * mean;
  });
}

Array accuracy(const Array& logits, const Array& labels) {
  return mean_of_rows(logits, labels, [](std::span<const double> row, std::size_t label) {
    const auto best = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
    return best == label ? 1.0 : 0.0;
  });
}

Array mean_of(const Array& a, const Array& b, const std::function<double(double, double)>& f) {
  double total = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) total += f(a.values[i], b.values[i]);
  return Array({}, {total / static_cast<double>(a.values.size())});
}

}  // namespace halfstep::reference
