#pragma once

#include "reference/array.h"

namespace halfstep::reference {

/// Mean of -log softmax(logits)[label] over the rows whose label is not ignored_label: {}. NaN where a label is no
/// class.
Array cross_entropy(const Array& logits, const Array& labels, double smoothing = 0);
/// The share of those rows whose first largest logit is the label's: {}.
Array accuracy(const Array& logits, const Array& labels);
/// Mean of (a - b)^2: {}.
Array mse_loss(const Array& a, const Array& b);

}  // namespace halfstep::reference
