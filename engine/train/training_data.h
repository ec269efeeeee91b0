#pragma once

#include <halfstep/trainer.h>

#include <cstdint>
#include <span>

#include "state/store.h"
#include "step/step_inputs.h"
#include "step/step_program.h"
#include "train/batches.h"

namespace halfstep::train {

/// Gathers batches of a set: of each bucket those fields that are fed, as much of each as is read. Their memory must
/// outlive what is returned. `buckets` are those of the samples (see buckets_of).
Supply set_supply(const Dataset& set, std::vector<std::vector<Field>> fields, std::vector<std::uint32_t> buckets);

/// Has the source fill batches of `batch` samples, and checks what it filled: an integer that is not below its bound,
/// or is a label of none of the classes that a loss tells apart, is an Error, as is anything that it throws. `graph`
/// has samples.
Supply source_supply(const Source& source, const step::StepGraph& graph, std::int64_t batch);

/// Places the fields of `inputs`, which are `fields`, in a data buffer, after the tables. Fields of the same memory
/// share it. Returns the buffer's bytes.
std::uint64_t place_resident(step::SampleInputs& inputs, std::span<const Field> fields);

/// Puts the tables into the data buffer, and the fields of `set` where they are resident.
void upload(vk::Context& context, const state::ParameterStore& store, const step::SampleInputs& inputs,
            const Dataset* set);

}  // namespace halfstep::train
