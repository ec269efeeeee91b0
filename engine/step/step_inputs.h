#pragma once

#include <halfstep/data.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "plan/program.h"
#include "step/share.h"

/// What the host gives a step, where it lies, and how it becomes the graph's inputs.
namespace halfstep::step {

struct StepGraph;

/// Where a field that is kept on the device lies in the data buffer.
struct ResidentField {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::int64_t first = 0;   ///< see Field
  std::int64_t stride = 0;  ///< elements from one sample to the next
};

/// An input that is fed from a field of a data set.
struct FieldInput {
  graph::ValueId input = 0;
  std::string field;  ///< its name in every set
  ElementType type = ElementType::u8;
  Shape stored;             ///< of a sample in the set
  std::int64_t length = 0;  ///< what is read of the first axis of `stored`; 0: all
  /// f32 becomes (x - mean) / stddev, bytes that become floating (x / 255 - mean) / stddev: one value, or one for each
  /// channel of the last axis. Integers that stay integers are not changed.
  std::vector<float> mean{0};
  std::vector<float> stddev{1};
  Augmentation augmentation{};      ///< in training
  std::uint64_t normalisation = 0;  ///< where the data buffer has the table of an f32 field that is_normalised()
  ResidentField resident{};         ///< where SampleInputs::resident

  /// The shape of what is read of a sample.
  Shape read() const {
    Shape shape = stored;
    if (length > 0) shape.front() = length;
    return shape;
  }
  bool is_normalised() const {
    return type == ElementType::f32 && (mean != std::vector{0.0F} || stddev != std::vector{1.0F});
  }
};

/// The inputs that are fed from a data set, which are all of a graph's inputs.
struct SampleInputs {
  std::vector<FieldInput> fields;
  std::int64_t batch = 0;  ///< samples of one micro-batch
  /// Whether the set is in the data buffer; if not, each slot brings the samples of its own batch.
  bool resident = false;
  std::uint64_t table_bytes = 0;  ///< of the tables that the data buffer begins with
};

/// An input that is fed with values.
struct FedInput {
  std::string name;
  TensorType type;                    ///< as the host gives it
  std::vector<std::uint64_t> places;  ///< in the slot, of each micro-batch
};

/// A place in a slot buffer.
struct SlotRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Where a slot buffer holds what: the batch is that of the whole step, with one micro-batch after the other.
struct SlotLayout {
  SlotRange indices;              ///< u32 {batch}, of samples
  std::vector<SlotRange> fields;  ///< of SampleInputs::fields, the batch's samples, where they are not resident
  std::vector<FedInput> inputs;   ///< StepGraph::inputs
  std::uint64_t size = 0;
};

/// The table of means and factors that a normalised field's kernel reads: a pair for each channel.
std::vector<std::array<float, 2>> normalisation_table(const FieldInput& input);

/// Lays out the slot of a step and feeds the graph's inputs from it, and from the data buffer.
class StepInputs {
 public:
  /// `builder` and `graph` must outlive this. `state` is a state::StepState.
  StepInputs(plan::ProgramBuilder& builder, const StepGraph& graph, plan::TensorId state, const Share& share);

  /// Appends what feeds the inputs of the micro-batch that is lowered next; `augmented` in training.
  void feed(std::uint32_t micro_batch, bool augmented);
  const SlotLayout& slot() const { return slot_; }

 private:
  /// The memory of a field.
  struct Source {
    plan::TensorId tensor = 0;
    std::optional<plan::TensorId> table{};  ///< where the field is normalised
    std::int64_t first = 0;
    std::int64_t stride = 0;
  };

  SlotRange take_slot(std::uint64_t bytes);
  Source source_of(const FieldInput& input, std::uint64_t step_batch);
  plan::TensorId input(graph::ValueId value);
  void feed_field(const FieldInput& field, const Source& source, std::uint32_t first, bool augmented);
  void feed_given(std::size_t i, std::uint32_t micro_batch);

  plan::ProgramBuilder& builder_;
  const StepGraph& graph_;
  plan::TensorId state_;
  std::uint32_t before_;
  plan::TensorId indices_ = 0;
  std::vector<Source> sources_;  ///< of SampleInputs::fields
  SlotLayout slot_;
};

}  // namespace halfstep::step
