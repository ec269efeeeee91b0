#include "reference/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace halfstep::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A row of a tensor of four axes.
const double* row_of(const Array& x, std::int64_t row) {
  return &x.values[static_cast<std::size_t>(row * x.shape[3])];
}
double* row_of(Array& x, std::int64_t row) {
  return &x.values[static_cast<std::size_t>(row * x.shape[3])];
}

double dot(const double* a, const double* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void add_times(double* sum, const double* x, double factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += factor * x[i];
}

/// One query: its row in the tensors of queries, and the first row of its keys.
struct Query {
  std::int64_t row = 0;
  std::int64_t position = 0;
  std::int64_t batch = 0;
  std::int64_t first_key = 0;
  std::int64_t keys = 0;
};

std::vector<Query> queries_of(std::span<const Array> x) {
  const Shape& q = x[0].shape;
  const Shape& k = x[1].shape;
  std::vector<Query> all;
  for (std::int64_t row = 0; row < q[0] * q[1] * q[2]; ++row) {
    const std::int64_t batch = row / q[2] / q[1];
    const std::int64_t head = row / q[2] % q[1] / (q[1] / k[1]);
    all.push_back({row, row % q[2], batch, (batch * k[1] + head) * k[2], k[2]});
  }
  return all;
}

bool sees(const Attention& options, const Query& query, std::int64_t key) {
  if (options.causal && key > query.position) return false;
  if (options.window > 0 && std::abs(query.position - key) >= options.window) return false;
  if (!options.segments.empty()) {
    const auto first = options.segments.begin() + query.batch * query.keys;
    if (first[query.position] != first[key]) return false;
  }
  return options.lengths.empty() || static_cast<double>(key) < options.lengths[static_cast<std::size_t>(query.batch)];
}

double kept(const Attention& options, const Query& query, std::size_t key) {
  return options.kept ? options.kept(query.row, static_cast<std::int64_t>(key)) : 1;
}

/// The weights of all keys for one query.
std::vector<double> weights_of(std::span<const Array> x, const Attention& options, const Query& query) {
  const std::int64_t c = x[0].shape[3];
  const std::int64_t keys = x[1].shape[2];
  std::vector<double> weights(static_cast<std::size_t>(keys), -infinity);
  for (std::int64_t j = 0; j < keys; ++j) {
    if (!sees(options, query, j)) continue;
    double& score = weights[static_cast<std::size_t>(j)];
    score = dot(row_of(x[0], query.row), row_of(x[1], query.first_key + j), c) / std::sqrt(static_cast<double>(c));
    if (options.masked) score += x[3].values[static_cast<std::size_t>(query.row * keys + j)];
  }
  const double top = *std::ranges::max_element(weights);
  double total = 0;
  for (double& w : weights) total += w = top == -infinity ? 0 : std::exp(w - top);
  for (double& w : weights) w = total == 0 ? 0 : w / total;
  return weights;
}

}  // namespace

Array attention(std::span<const Array> x, const Attention& options) {
  const std::int64_t d = x[2].shape[3];
  Array y({x[0].shape[0], x[0].shape[1], x[0].shape[2], d});
  for (const Query& query : queries_of(x)) {
    const std::vector<double> weights = weights_of(x, options, query);
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const std::int64_t key = query.first_key + static_cast<std::int64_t>(j);
      if (weights[j] != 0) add_times(row_of(y, query.row), row_of(x[2], key), weights[j] * kept(options, query, j), d);
    }
  }
  return y;
}

std::vector<Array> attention_gradients(std::span<const Array> x, const Array& dy, const Attention& options) {
  const std::int64_t c = x[0].shape[3];
  const std::int64_t d = x[2].shape[3];
  const double scale = 1 / std::sqrt(static_cast<double>(c));
  std::vector<Array> gradients{Array(x[0].shape), Array(x[1].shape), Array(x[2].shape)};
  if (options.masked) gradients.emplace_back(x[3].shape);
  for (const Query& query : queries_of(x)) {
    const std::vector<double> weights = weights_of(x, options, query);
    std::vector<double> products(weights.size());
    double mean = 0;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const std::int64_t key = query.first_key + static_cast<std::int64_t>(j);
      if (weights[j] == 0) continue;
      const double factor = kept(options, query, j);
      products[j] = dot(row_of(dy, query.row), row_of(x[2], key), d) * factor;
      mean += weights[j] * products[j];
      add_times(row_of(gradients[2], key), row_of(dy, query.row), weights[j] * factor, d);
    }
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const std::int64_t key = query.first_key + static_cast<std::int64_t>(j);
      const double score = weights[j] * (products[j] - mean);
      if (score == 0) continue;
      add_times(row_of(gradients[0], query.row), row_of(x[1], key), score * scale, c);
      add_times(row_of(gradients[1], key), row_of(x[0], query.row), score * scale, c);
      if (options.masked) gradients[3].values[static_cast<std::size_t>(query.row) * weights.size() + j] += score;
    }
  }
  return gradients;
}

}  // namespace halfstep::reference
