#pragma once

#include <functional>
#include <span>
#include <vector>

#include "reference/array.h"

namespace halfstep::reference {

/// A network of dense layers. Its inputs are x {rows, in}, then each layer's weight {k, n} and, with biases, its bias
/// {n}.
struct Mlp {
  std::function<double(double)> activation;  ///< after each layer but the last
  std::function<double(double)> slope;       ///< its derivative, of the same argument
  bool biases = true;
};

/// y {rows, out}.
Array mlp(std::span<const Array> inputs, const Mlp& network);
/// The gradients for all inputs, from that of the result.
std::vector<Array> mlp_gradients(std::span<const Array> inputs, const Array& dy, const Mlp& network);

}  // namespace halfstep::reference
