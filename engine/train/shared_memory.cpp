#include "train/shared_memory.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <vulkan/vulkan.h>

#include <algorithm>

namespace halfstep::train {
namespace {

step::SharedTensor shared_tensor(std::string_view who, const graph::Value& value, graph::ValueId id, DType dtype,
                                 const DeviceBuffer& memory, std::int64_t times) {
  step::SharedTensor shared{id, value.name, {dtype, value.type.shape}, memory};
  const bool is_buffer = memory.buffer != 0;
  if (is_buffer == (memory.memory != 0)) {
    fail(who, fmt::format("expected a buffer or memory for '{}', got {}", value.name, is_buffer ? "both" : "none"));
  }
  if (memory.usage != 0 && (memory.usage & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT) == 0) {
    fail(who, fmt::format("expected a buffer with VK_BUFFER_USAGE_STORAGE_BUFFER_BIT for '{}', got one of usage {:#x}",
                          value.name, memory.usage));
  }
  if (memory.offset % 4 != 0) {
    fail(who, fmt::format("expected an offset that is a multiple of 4 for '{}', got {}", value.name, memory.offset));
  }
  const auto needed = static_cast<std::uint64_t>(4 * times * elements(value.type.shape));
  if (memory.bytes >= needed) {
    shared.memory.bytes = needed;
    return shared;
  }
  fail(who,
       fmt::format("expected {} bytes for{} '{}' {}, got {}", needed, times > 1 ? fmt::format(" {} times", times) : "",
                   value.name, to_string(shared.type), memory.bytes),
       "rows are not padded, and elements are f32 or u32");
}

}  // namespace

void share_inputs(std::string_view who, step::StepGraph& graph, const std::map<std::string, DeviceBuffer>& memory,
                  std::int64_t micro_batches) {
  for (const auto& [name, range] : memory) {
    const auto found =
        std::ranges::find_if(graph.inputs, [&](graph::ValueId value) { return graph.ir.values[value].name == name; });
    if (found == graph.inputs.end()) {
      fail(who, fmt::format("expected shared memory for an input that is given values, got some for '{}'", name));
    }
    const auto type = graph.input_types.begin() + (found - graph.inputs.begin());
    graph.read.push_back(shared_tensor(who, graph.ir.values[*found], *found, type->dtype, range, micro_batches));
    graph.inputs.erase(found);
    graph.input_types.erase(type);
  }
}

void share_output(std::string_view who, step::StepGraph& graph, const DeviceBuffer& memory) {
  const graph::Value& output = graph.ir.values[graph.outputs.front()];
  graph.written = shared_tensor(who, output, graph.outputs.front(), DType::f32, memory, 1);
}

}  // namespace halfstep::train
