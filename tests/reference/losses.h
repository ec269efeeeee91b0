#pragma once

#include "reference/array.h"

namespace halfstep::reference {

/// Mean of -log softmax(logits)[label] over the rows whose label is not ignored_label: {}. NaN if a label is not a
/// class.
Array cross_entropy(const Array& logits, const Array& labels, double smoothing = 0);
/// The fraction of those rows whose first largest logit is the label's: {}.
Array accuracy(const Array& logits, const Array& labels);
/// Mean of f over the elements of a and b, which have the same shape: {}.
Array mean_of(const Array& a, const Array& b, const std::function<double(double, double)>& f);

}  // namespace halfstep::reference
