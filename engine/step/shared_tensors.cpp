#include "step/shared_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/dtype.h"
#include "plan/layout.h"
#include "state/buffers.h"
#include "step/step_program.h"

namespace halfstep::step {
namespace {

struct Push {
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t first;  ///< element of the bound memory that the tensor begins with
};

Push push_for(const Shape& shape, std::uint32_t first) {
  const plan::Layout lay = plan::layout(shape);
  return {static_cast<std::uint32_t>(lay.rows), static_cast<std::uint32_t>(lay.columns), first};
}

}  // namespace

SharedTensors::SharedTensors(plan::ProgramBuilder& builder, const StepGraph& graph) : builder_(builder), graph_(graph) {
  for (const SharedTensor& shared : graph.read) read_.push_back(bind(shared));
  if (graph.written) written_.push_back(bind(*graph.written));
}

/// Tensors in one buffer of the application are in one buffer of the program, so that barriers know where they overlap.
SharedTensors::Bound SharedTensors::bind(const SharedTensor& shared) {
  const DeviceBuffer& memory = shared.memory;
  auto found = std::ranges::find_if(
      buffers_, [&](const DeviceBuffer& each) { return memory.buffer != 0 && each.buffer == memory.buffer; });
  if (found == buffers_.end()) {
    builder_.buffer(fmt::format("{} (the application's)", shared.name));
    found = buffers_.insert(buffers_.end(), memory);
  } else {  // the range that has both
    const std::uint64_t end = std::max(found->offset + found->bytes, memory.offset + memory.bytes);
    found->offset = std::min(found->offset, memory.offset);
    found->bytes = end - found->offset;
  }
  const auto id =
      static_cast<plan::BufferId>(state::buffers::table.size() + static_cast<std::size_t>(found - buffers_.begin()));
  const std::uint64_t offset = memory.buffer != 0 ? memory.offset : 0;
  const std::uint64_t aligned = offset / builder_.target().offset_alignment * builder_.target().offset_alignment;
  return {builder_.place_bytes(fmt::format("{} (the application's)", shared.name), offset - aligned + memory.bytes,
                               {id, aligned}),
          static_cast<std::uint32_t>((offset - aligned) / sizeof(float))};
}

void SharedTensors::read(std::uint32_t micro_batch) {
  for (std::size_t i = 0; i < read_.size(); ++i) {
    const SharedTensor& shared = graph_.read[i];
    const TensorType& type = graph_.ir.values[shared.value].type;
    const plan::TensorId input = builder_.tensor(shared.name, type);
    builder_.values().bind(shared.value, input);
    const std::uint32_t local_size = plan::flat_local_size(builder_.target());
    const auto first = read_[i].first + micro_batch * static_cast<std::uint32_t>(elements(type.shape));
    builder_.dispatch({.label = fmt::format("read {}", shared.name),
                       .shader = is_floating(type.dtype)
                                     ? fmt::format("read_rows.{}", plan::storage(builder_.target(), type.dtype))
                                     : "read_words.u32",
                       .constants = {local_size},
                       .push = plan::push_bytes(push_for(type.shape, first)),
                       .operands = {{read_[i].tensor, plan::Access::read}, {input, plan::Access::write}},
                       .groups = plan::groups_for(builder_.target(), plan::layout(type.shape).quads(), local_size)});
  }
}

void SharedTensors::write() {
  if (written_.empty()) return;
  const plan::TensorId output = builder_.values().tensor_of(graph_.ir, graph_.written->value);
  const TensorType type = builder_.info(output).type;
  const std::uint32_t local_size = plan::flat_local_size(builder_.target());
  builder_.dispatch({.label = fmt::format("write {}", graph_.written->name),
                     .shader = fmt::format("write_rows.{}", plan::storage(builder_.target(), type.dtype)),
                     .constants = {local_size},
                     .push = plan::push_bytes(push_for(type.shape, written_.front().first)),
                     .operands = {{output, plan::Access::read}, {written_.front().tensor, plan::Access::write}},
                     .groups = plan::groups_for(builder_.target(), plan::layout(type.shape).quads(), local_size)});
}

}  // namespace halfstep::step
