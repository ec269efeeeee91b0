#include "selftest/reproduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "harness/device.h"
#include "plan/host_tensor.h"
#include "selftest/bed.h"
#include "selftest/planted.h"
#include "step/recording.h"
#include "vk/command/transfer.h"
#include "vk/shader/spirv.h"

namespace halfstep::selftest {
namespace {

/// A module without the modes of float controls, which are added again as the device supports them.
Words without_float_controls(const Words& words) {
  constexpr std::uint32_t first_mode = 4459;
  constexpr std::uint32_t last_mode = 4463;
  constexpr std::uint32_t first_capability = 4464;
  constexpr std::uint32_t last_capability = 4468;
  const std::string name = "SPV_KHR_float_controls";
  Words result(words.begin(), words.begin() + vk::spirv_header_words);
  vk::for_each_instruction(words, [&](const vk::Instruction& i) {
    const std::uint32_t operand = i.operand(i.opcode == vk::op_execution_mode ? 2 : 1);
    const bool mode = i.opcode == vk::op_execution_mode && operand >= first_mode && operand <= last_mode;
    const bool capability = i.opcode == vk::op_capability && operand >= first_capability && operand <= last_capability;
    const bool extension =
        i.opcode == vk::op_extension && reinterpret_cast<const char*>(i.words.data() + 1) == name;  // zero-terminated
    if (!mode && !capability && !extension) result.insert(result.end(), i.words.begin(), i.words.end());
  });
  return result;
}

std::vector<std::byte> content_of(const vk::Buffer& buffer) {
  std::vector<std::byte> bytes(buffer.bytes());
  vk::download(testing::context(), buffer, 0, bytes);
  return bytes;
}

std::vector<double> numbers(const plan::ProgramTensor& tensor, const vk::Buffer& buffer) {
  std::vector<std::byte> memory(tensor.bytes);
  vk::download(testing::context(), buffer, tensor.region.offset, memory);
  if (tensor.type.dtype == DType::u32) {
    const std::vector<std::uint32_t> words = plan::words_from_memory(tensor.type, memory);
    return {words.begin(), words.end()};
  }
  const std::vector<float> floats = plan::floats_from_memory(tensor.type, memory);
  return {floats.begin(), floats.end()};
}

bool agree(double got, double want, double allowed) {
  if (!std::isfinite(want)) return std::isnan(want) ? std::isnan(got) : got == want;
  return std::abs(got - want) <= allowed;
}

}  // namespace

Reproduction reproduction_of(const std::string& what, const testing::ObservedRun& run) {
  Reproduction made{.what = what, .device = testing::device().info().driver};
  made.program = run.execution.plan().program;
  for (plan::Dispatch& dispatch : made.program.dispatches) dispatch = given_dispatch(dispatch);
  made.program.choices.clear();
  const auto buffers = run.execution.buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    made.buffers.push_back({buffers.at(i)->name(), buffers.at(i)->bytes()});
    if (i != plan::arena_buffer) made.buffers.back().content = content_of(*buffers.at(i));
  }
  made.output = run.execution.place_of(run.output);
  made.program.tensors[made.output].type = run.type;
  made.want = run.want;
  made.allowed = run.allowed;
  return made;
}

std::string objection(const Reproduction& reproduction) {
  vk::Context& context = testing::context();
  plan::Plan plan;
  plan.program = reproduction.program;
  for (plan::Dispatch& dispatch : plan.program.dispatches) {
    dispatch.spirv = std::make_shared<const Words>(without_float_controls(*dispatch.spirv));
    dispatch.windows = plan::windows_of(plan.program, context.target(), dispatch);
  }
  plan.barrier_before.assign(plan.program.dispatches.size(), true);
  std::vector<vk::Buffer> buffers;
  for (const Reproduction::Buffer& one : reproduction.buffers) {
    buffers.emplace_back(context, one.bytes, vk::Memory::device, one.name);
    vk::fill(context, buffers.back(), 0, one.bytes / 4 * 4, 0xFFFFFFFFU);
    vk::upload(context, buffers.back(), 0, one.content);
  }
  std::vector<const vk::Buffer*> pointers;
  for (const vk::Buffer& buffer : buffers) pointers.push_back(&buffer);
  step::Recording recording(context, *testing::pipelines(), plan, pointers);
  vk::Timeline timeline(context);
  recording.run(timeline);
  const plan::ProgramTensor& output = plan.program.tensors.at(reproduction.output);
  const std::vector<double> got = numbers(output, buffers.at(output.region.buffer));
  if (got.size() != reproduction.want.size())
    return fmt::format("expected {} elements, got {}", reproduction.want.size(), got.size());
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (agree(got[i], reproduction.want[i], reproduction.allowed[i]) || wrong++ > 0) continue;
    first = fmt::format("element {} is {:.9g}, expected {:.9g} +- {:.3g}", i, got[i], reproduction.want[i],
                        reproduction.allowed[i]);
  }
  return wrong == 0 ? "" : fmt::format("{} of {} elements are wrong, first: {}", wrong, got.size(), first);
}

}  // namespace halfstep::selftest
