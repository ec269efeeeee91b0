#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reference/array.h"

namespace halfstep::reference {

/// What queries see: as halfstep::AttentionOptions has it.
struct Attention {
  bool causal = false;
  std::int64_t window = 0;
  std::vector<double> lengths{};   ///< of every batch; none if empty
  std::vector<double> segments{};  ///< of every batch's rows; none if empty
  bool masked = false;             ///< x[3] is a mask {n, h, queries, keys}
  /// What dropout multiplies the weight of a key by, for a query as a row of {n, h, queries}; 1 where empty.
  std::function<double(std::int64_t row, std::int64_t key)> kept{};
};

/// Attention as it is defined. x: queries {n, h, queries, c}, keys {n, g, keys, c}, values {n, g, keys, d}, perhaps a
/// mask.
Array attention(std::span<const Array> x, const Attention& options);
/// The gradients for queries, keys, values and, if there is one, the mask, from that of the result.
std::vector<Array> attention_gradients(std::span<const Array> x, const Array& dy, const Attention& options);

}  // namespace halfstep::reference
