#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "samples/watch/drawing.h"
#include "samples/watch/records.h"

namespace samples {

/// The exponents of a tensor over time, and what was wrong with its numbers.
struct TensorHistory {
  struct Look {
    double step = 0;
    std::vector<double> shares;  ///< of the tensor's numbers, by exponent
  };
  std::string name;
  int first_exponent = 0;
  std::vector<Look> looks;
  Record last;                ///< its newest record
  double not_finite = 0;      ///< looks that saw infinities or NaN
  double too_large = 0;       ///< looks that saw numbers at the largest of the type
  double most_subnormal = 0;  ///< the largest share of subnormal numbers
};

/// A step that was skipped, and the first tensor seen in it whose numbers were not finite: empty if none was looked at.
struct Overflow {
  double step = 0;
  double loss_scale = 0;
  std::string culprit;
  std::string kind;  ///< "3 infinities, 1 NaN"
};

/// What the records of a run say about its numbers.
class Numerics {
 public:
  void add(const Record& record);

  /// Those with the most looks that were not finite first, then by numbers that were too large and too small.
  std::vector<const TensorHistory*> tensors() const;
  /// The steps that were skipped, in order.
  std::vector<Overflow> overflows() const;
  /// How many more were skipped before the first of these records.
  double skipped_before() const { return skipped_before_.value_or(0); }

 private:
  void add_tensor(const Record& record);

  std::map<std::string, TensorHistory> tensors_;
  std::map<double, Overflow> bad_looks_;  ///< by step: the first that was not finite
  std::vector<Overflow> overflows_;
  std::optional<double> skipped_before_;
};

/// Pictures of exponents over steps, in three columns: a column of a picture is a step (or the mean of several), a row
/// an exponent, and the stronger the colour the more of the tensor's numbers. Lines frame what f16 stores normally.
std::string draw_exponents(const std::vector<const TensorHistory*>& tensors);

}  // namespace samples
