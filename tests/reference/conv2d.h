#pragma once

#include <halfstep/ops.h>

#include "reference/array.h"

namespace halfstep::reference {

/// Cross-correlation of images {n, h, w, in} with weight {kh, kw, in / groups, out}.
Array conv2d(const Array& images, const Array& weight, const Conv2dOptions& options);

/// The gradients of sum(conv2d(images, weight) * cotangent).
Array conv2d_data_gradient(const Array& cotangent, const Array& weight, const Shape& images,
                           const Conv2dOptions& options);
Array conv2d_weight_gradient(const Array& images, const Array& cotangent, const Shape& weight,
                             const Conv2dOptions& options);

}  // namespace halfstep::reference
