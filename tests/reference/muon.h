#pragma once

#include <halfstep/optimizer.h>

#include <vector>

#include "reference/array.h"

namespace halfstep::reference {

/// The Newton-Schulz iteration of Jordan et al. 2024 on u as a matrix {all axes but the last, the last}, five times.
Array orthogonalised(const Array& u);

/// The singular values of x as such a matrix, the smallest first.
std::vector<double> singular_values(const Array& x);

/// Muon in double, on one parameter.
class MuonWeights {
 public:
  /// `moments` is the type that the momentum is kept in, rounded to nearest.
  MuonWeights(const Muon& muon, const Array& weights, DType moments);

  void step(const Array& gradient);
  const Array& weights() const { return weights_; }

 private:
  Muon muon_;
  Array weights_;
  Array momentum_;
  DType moments_;
};

}  // namespace halfstep::reference
