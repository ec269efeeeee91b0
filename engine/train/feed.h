#pragma once

#include <halfstep/trainer.h>

#include "graph/ir.h"
#include "step/step_program.h"

namespace halfstep::train {

/// Throws Error unless the feed's tensors are inputs of `ir` of the right types, and everything it asks for can be done
/// to samples of the shape `stored`, as they lie in the set.
void check_feed(const Feed& feed, const graph::Ir& ir, const Shape& stored);

/// The shape of a sample in the sets that the feed reads: the training set's or, without one, the input's.
Shape stored_shape(const Feed& feed, const Dataset* training_set);

/// Throws Error where a label of the set stands for none of the classes that a loss or metric of `labels` tells apart.
void check_classes(const Dataset& set, const graph::Ir& ir, graph::ValueId labels);

/// The mean and deviation as one multiplication and addition on bytes. Throws Error where there is no such thing.
step::Normalization normalization(const Feed& feed);

}  // namespace halfstep::train
