#include "reference/mlp.h"

#include <algorithm>
#include <cstddef>

namespace halfstep::reference {
namespace {

std::size_t rows_of(const Array& a) {
  return a.extent(0);
}
std::size_t columns_of(const Array& a) {
  return a.extent(1);
}

Array product(const Array& a, const Array& b) {
  Array c({a.shape[0], b.shape[1]});
  for (std::size_t row = 0; row < rows_of(a); ++row) {
    for (std::size_t k = 0; k < columns_of(a); ++k) {
      const double factor = a.values[row * columns_of(a) + k];
      for (std::size_t n = 0; n < columns_of(b); ++n) {
        c.values[row * columns_of(b) + n] += factor * b.values[k * columns_of(b) + n];
      }
    }
  }
  return c;
}

Array transposed(const Array& a) {
  Array t({a.shape[1], a.shape[0]});
  for (std::size_t row = 0; row < rows_of(a); ++row) {
    for (std::size_t n = 0; n < columns_of(a); ++n) t.values[n * rows_of(a) + row] = a.values[row * columns_of(a) + n];
  }
  return t;
}

/// What a layer gets, and what it gives before its activation.
struct Passed {
  Array x;
  Array before;
};

std::vector<Passed> passed(std::span<const Array> inputs, const Mlp& network) {
  std::vector<Passed> all;
  Array x = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); i += network.biases ? 2 : 1) {
    Array y = product(x, inputs[i]);
    if (network.biases) {
      for (std::size_t j = 0; j < y.values.size(); ++j) y.values[j] += inputs[i + 1].values[j % columns_of(y)];
    }
    all.push_back({x, y});
    x = y;
    for (double& v : x.values) v = network.activation(v);
  }
  return all;
}

}  // namespace

Array mlp(std::span<const Array> inputs, const Mlp& network) {
  return passed(inputs, network).back().before;
}

std::vector<Array> mlp_gradients(std::span<const Array> inputs, const Array& dy, const Mlp& network) {
  const std::vector<Passed> layers = passed(inputs, network);
  std::vector<Array> gradients;  // from the last to the first
  Array gradient = dy;
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    const Array& x = layers[layer].x;
    if (network.biases) {
      Array bias({gradient.shape[1]});
      for (std::size_t j = 0; j < gradient.values.size(); ++j) {
        bias.values[j % columns_of(gradient)] += gradient.values[j];
      }
      gradients.push_back(bias);
    }
    gradients.push_back(product(transposed(x), gradient));
    gradient = product(gradient, transposed(inputs[1 + layer * (network.biases ? 2 : 1)]));
    if (layer == 0) continue;
    for (std::size_t j = 0; j < gradient.values.size(); ++j) {
      gradient.values[j] *= network.slope(layers[layer - 1].before.values[j]);
    }
  }
  gradients.push_back(gradient);
  std::ranges::reverse(gradients);
  return gradients;
}

}  // namespace halfstep::reference
