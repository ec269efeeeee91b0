#pragma once

#include "reference/array.h"

namespace halfstep::reference {

/// Mean of -log softmax(logits)[label] over the rows whose label is not ignored_label: {}. NaN where a label is no
/// class.
Array cross_entropy(const Array& logits, const Array& labels, double smoothing = 0);
/// The share of those rows whose first largest logit is the label's: {}.
Array accuracy(const Array& logits, const Array& labels);
/// Mean of f of the elements of a and b, which have one shape: {}.
Array mean_of(const Array& a, const Array& b, const std::function<double(double, double)>& f);

}  // namespace halfstep::reference
