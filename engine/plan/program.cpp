#include "plan/program.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/beyond_limit.h"
#include "plan/casts.h"
#include "plan/fusion.h"
#include "plan/pointwise.h"
#include "plan/texel_operands.h"

namespace halfstep::plan {

std::uint64_t bytes_touched(const Program& program, const Dispatch& dispatch) {
  // A tensor may be bound more than once, in place of an operand that the kernel does not use.
  std::map<TensorId, std::uint64_t> touched;
  for (const Operand& operand : dispatch.operands) {
    const std::uint64_t bytes = std::min(program.tensors[operand.tensor].bytes, operand.most_bytes);
    touched[operand.tensor] =
        std::max(touched[operand.tensor], operand.access == Access::read_write ? 2 * bytes : bytes);
  }
  std::uint64_t total = 0;
  for (const auto& [tensor, bytes] : touched) total += bytes;
  return total;
}

std::string label_of(const graph::Node& node) {
  return node.scope.empty() ? node.op->name() : fmt::format("{}/{}", node.scope, node.op->name());
}

namespace {

bool writes_narrow(const Program& program, const Operand& operand) {
  return operand.access != Access::read && is_narrow(program.tensors[operand.tensor].type.dtype);
}

/// The scales of what a dispatch writes in narrow types.
void set_scales(const StoreRules& rules, std::span<const TensorId> written, Dispatch& dispatch) {
  Storing& storing = dispatch.storing;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const std::uint32_t place = rules.scale_of(written[i]);
    if (place != 0 && i >= storing.scales.size()) {
      fail(dispatch.label,
           fmt::format("expected at most {} results with scaled ones among them, got more", storing.scales.size()));
    }
    if (place != 0) storing.scales[i] = place;
    storing.scaled |= place != 0;
  }
}

/// What the noise for a dispatch's result is keyed on. An application's kernels may write a tensor again, each with
/// noise of its own: rounded by the same numbers each time, the mean would not be that of the results.
std::string noise_of(const std::string& tensor, const Dispatch& dispatch, std::uint32_t writers) {
  return dispatch.spirv && writers > 0 ? fmt::format("{} written {}", tensor, writers) : tensor;
}

void set_storing(const Program& program, const StoreRules& rules, const GraphValues& values,
                 std::span<const std::uint32_t> writers, Dispatch& dispatch) {
  if (dispatch.stores_by_itself) return;
  std::vector<TensorId> written;
  for (const Operand& operand : dispatch.operands) {
    if (writes_narrow(program, operand)) written.push_back(operand.tensor);
  }
  if (written.empty()) return;
  dispatch.storing = rules.storing();
  std::array<std::uint32_t, 2>& streams = dispatch.storing.streams;
  for (std::size_t i = 0; dispatch.storing.stochastic && i < std::min(streams.size(), written.size()); ++i) {
    const std::uint32_t before = written[i] < writers.size() ? writers[written[i]] : 0;
    streams[i] = values.stream_of(noise_of(program.tensors[written[i]].name, dispatch, before));
  }
  set_scales(rules, written, dispatch);
}

void check_limits(const Program& program, const Target& target, const Dispatch& dispatch) {
  check_bindings(program, target, dispatch);
  if (dispatch.rounds > target.max_rounds) {
    fail(dispatch.label,
         fmt::format("expected a kernel of at most {} loop rounds an invocation, the driver's limit, got {} for {}",
                     target.max_rounds, dispatch.rounds, dispatch.shader),
         "use smaller windows, groups or images here, or another driver");
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (dispatch.groups[axis] == 0 || dispatch.groups[axis] > target.max_groups[axis]) {
      fail_beyond_limit(dispatch.label,
                        fmt::format("expected 1 to {} workgroups along axis {}, got {}", target.max_groups[axis], axis,
                                    dispatch.groups[axis]),
                        "a smaller batch takes fewer");
    }
  }
}

}  // namespace

BufferId ProgramBuilder::buffer(std::string name) {
  program_.buffers.push_back(std::move(name));
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

TensorId ProgramBuilder::place(std::string name, TensorType type, Region region) {
  const std::uint64_t size = byte_size(type);
  program_.tensors.push_back({std::move(name), std::move(type), size, region, false});
  return static_cast<TensorId>(program_.tensors.size() - 1);
}

TensorId ProgramBuilder::place_bytes(std::string name, std::uint64_t bytes, Region region) {
  program_.tensors.push_back(
      {std::move(name), {DType::u32, {static_cast<std::int64_t>(bytes / 4)}}, bytes, region, false});
  return static_cast<TensorId>(program_.tensors.size() - 1);
}

TensorId ProgramBuilder::tensor(std::string name, TensorType type) {
  return place(std::move(name), std::move(type), {arena_buffer, 0});
}

void ProgramBuilder::lower(const graph::Ir& ir, const graph::Node& node) {
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  std::vector<TensorType> types;
  for (const graph::ValueId value : node.inputs) {
    inputs.push_back(values_.tensor_of(ir, value));
    types.push_back(info(inputs.back()).type);
  }
  node.op->infer(types);  // types given by hand are resolved only now
  for (const graph::ValueId value : node.outputs) {
    if (!values_.is_bound(value)) values_.bind(value, tensor(ir.values[value].name, ir.values[value].type));
    outputs.push_back(values_.tensor_of(ir, value));
  }
  const bool moments = stores_.scale_of(outputs.front()) == 0 && values_.moments_wanted(ir, node.outputs.front());
  Lowering lowering(*this, label_of(node), std::move(inputs), std::move(outputs), moments);
  const std::size_t first = program_.dispatches.size();
  node.op->lower(lowering);
  for (Dispatch& dispatch : std::span(program_.dispatches).subspan(first)) dispatch.recomputed = node.recomputed;
}

void ProgramBuilder::dispatch(Dispatch dispatch) {
  for (Operand& operand : dispatch.operands) operand.tensor = resolve(operand.tensor);
  check_limits(program_, target_, dispatch);
  set_storing(program_, stores_, values_, writers_, dispatch);
  dispatch.phase = phase_;
  dispatch.reproducible = target_.reproducible;
  dispatch.rounded_by_driver = target_.float16.rounded_by_driver;
  count_writers(dispatch);
  program_.dispatches.push_back(std::move(dispatch));
}

std::optional<ChannelMoments> ProgramBuilder::moments_of(TensorId tensor) const {
  const TensorId root = resolve(tensor);
  const auto found = moments_.find(root);
  if (found == moments_.end()) return std::nullopt;
  if (writers(root) != 1) return std::nullopt;
  if (info(tensor).type.shape.back() != info(root).type.shape.back()) return std::nullopt;
  return found->second;
}

std::size_t ProgramBuilder::choose(Choice choice) {
  const auto wanted = target_.choices.find(choice.key);
  const auto& candidates = choice.candidates;
  const auto found = std::ranges::find_if(candidates, [&](const Candidate& candidate) {
    return wanted != target_.choices.end() && candidate.name == wanted->second;
  });
  const auto taken = found == candidates.end() ? 0 : static_cast<std::size_t>(found - candidates.begin());
  program_.choices.push_back(std::move(choice));
  return taken;
}

void ProgramBuilder::alias(TensorId alias, TensorId source, std::string label) {
  const bool has_own_place = program_.tensors[alias].region.buffer != arena_buffer;
  if (has_own_place) return copy(alias, source, std::move(label));
  aliases_[alias] = resolve(source);
}

void ProgramBuilder::copy(TensorId to, TensorId from, std::string label) {
  if (stores_.scale_of(to) != 0) {  // which a copy of the bytes would not apply
    Expression same{.layout = layout(info(to).type.shape), .reads = {Reading{}}, .value = 0};
    Dispatch stored = pointwise(std::move(same), {{to, Access::write}, {from, Access::read}});
    stored.label = std::move(label);
    dispatch(std::move(stored));
    return;
  }
  struct Push {
    std::uint32_t pairs;
  };
  constexpr std::uint32_t local_size = 64;
  const std::uint64_t pairs = program_.tensors[from].bytes / 8;
  dispatch({.label = std::move(label),
            .shader = "copy",
            .constants = {local_size},
            .push = push_bytes(Push{static_cast<std::uint32_t>(pairs)}),
            .operands = {{from, Access::read}, {to, Access::write}},
            .groups = groups_for(target_, static_cast<std::int64_t>(pairs), local_size)});
}

TensorId ProgramBuilder::keep(TensorId tensor) {
  const TensorId root = resolve(tensor);
  program_.tensors[root].kept = true;
  return root;
}

TensorId ProgramBuilder::resolve(TensorId tensor) const {
  const auto found = aliases_.find(tensor);
  return found == aliases_.end() ? tensor : found->second;
}

bool ProgramBuilder::is_written(TensorId tensor) const {
  const TensorId root = resolve(tensor);
  return program_.tensors[root].region.buffer != arena_buffer || writers(root) > 0;
}

void ProgramBuilder::count_writers(const Dispatch& dispatch) {
  std::set<TensorId> written;
  for (const Operand& operand : dispatch.operands) {
    if (operand.access != Access::read) written.insert(operand.tensor);
  }
  writers_.resize(program_.tensors.size());
  for (const TensorId tensor : written) ++writers_[tensor];
}

std::uint32_t ProgramBuilder::writers(TensorId root) const {
  return root < writers_.size() ? writers_[root] : 0;
}

Program ProgramBuilder::finish() {
  program_.noise_key = stores_.noise_key();
  program_.scales = stores_.scales();
  program_.dispatches_unfused = program_.dispatches.size() + static_cast<std::size_t>(unfused_);
  if (target_.fusion) {
    spare_casts(program_);
    fuse(program_, target_);
  }
  for (Dispatch& dispatch : program_.dispatches) {
    settle_variant(program_, target_, dispatch);
    if (dispatch.expression) specialize(program_, target_, dispatch);
    dispatch.windows = windows_of(program_, target_, dispatch);
    mark_texel_operands(program_, target_, dispatch);
  }
  return std::move(program_);
}

}  // namespace halfstep::plan
