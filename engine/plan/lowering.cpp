#include "plan/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/beyond_limit.h"
#include "graph/dtype.h"
#include "plan/program.h"

namespace halfstep::plan {

const Target& Lowering::target() const {
  return builder_->target();
}

Partials Lowering::partials() const {
  return input_type(0).dtype == DType::f16 ? builder_->options().partials : Partials{};
}

const Storing& Lowering::storing() const {
  return builder_->stores().storing();
}

Noise Lowering::noise(std::string_view what) const {
  return {builder_->stores().noise_key().value(), builder_->values().stream_of(what)};
}

TensorType Lowering::type(TensorId tensor) const {
  return builder_->info(tensor).type;
}

const std::string& Lowering::name_of_first() const {
  return builder_->info(outputs_.front()).name;
}

TensorId Lowering::workspace(std::string_view name, TensorType type) {
  return builder_->tensor(fmt::format("{}.{}", name_of_first(), name), std::move(type));
}

void Lowering::alias(std::size_t out, std::size_t in) {
  builder_->alias(output(out), input(in), label_);
}

void Lowering::lower_as(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& build) {
  const auto ir = std::make_shared<graph::Ir>(graph::Types::settled);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    graph::Value value;
    value.type = input_type(i);
    value.name = fmt::format("{}.input{}", label_, i);
    value.origin = graph::Origin::input;
    inputs.push_back(ir->tensor(ir->add_value(std::move(value))));
  }
  const std::vector<Tensor> results = build(inputs);
  ir->attribute(0, label_, "lowered as other operators");
  for (graph::Value& value : ir->values) {
    if (value.origin == graph::Origin::node) value.name = fmt::format("{} as {}", name_of_first(), value.name);
  }
  // The values that are bound are those of the graph that this operator belongs to.
  GraphValues outer = std::exchange(builder_->values(), builder_->values().part());
  for (std::size_t i = 0; i < inputs.size(); ++i) builder_->values().bind(inputs[i].id(), inputs_[i]);
  for (std::size_t i = 0; i < results.size(); ++i) builder_->values().bind(results[i].id(), outputs_.at(i));
  for (const graph::Node& node : ir->nodes) builder_->lower(*ir, node);
  builder_->values() = std::move(outer);
}

void Lowering::lower_with_wide_sums(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& build) {
  const Partials outer = builder_->set_partials({});
  lower_as(build);
  builder_->set_partials(outer);
}

void Lowering::dispatch(Dispatch dispatch) {
  if (dispatch.label.empty()) dispatch.label = label_;
  builder_->dispatch(std::move(dispatch));
}

void Lowering::provide_moments(TensorId tensor, const ChannelMoments& moments) {
  builder_->provide_moments(tensor, moments);
}

std::optional<ChannelMoments> Lowering::moments_of(TensorId tensor) const {
  return builder_->moments_of(tensor);
}

std::int64_t Lowering::ranks() const {
  return builder_->options().statistics.ranks;
}

TensorId Lowering::over_ranks(TensorId own, OverRanks kind, std::int64_t rows) {
  const RankStatistics& statistics = builder_->options().statistics;
  return statistics.exchange ? statistics.exchange(own, kind, rows) : own;
}

void Lowering::count_unfused(std::ptrdiff_t dispatches) {
  builder_->count_unfused(dispatches);
}

std::size_t Lowering::choose(Choice choice) {
  return builder_->choose(std::move(choice));
}

std::string_view storage(const Target& target, DType dtype) {
  const graph::TypeInfo& info = graph::info(dtype);
  const bool native = target.float16.storage == Storage16::native && !target.float16.words;
  return native && info.elements16 ? info.name : info.words;
}

std::uint32_t flat_local_size(const Target& target) {
  return std::min(target.cpu ? 64U : 256U, target.max_invocations);
}

std::array<std::uint32_t, 3> groups_for(const Target& target, std::int64_t count, std::uint32_t local_size) {
  constexpr std::int64_t most_invocations = std::int64_t{1} << 32;
  const std::int64_t most = target.max_groups[0];
  const std::int64_t groups = std::max<std::int64_t>(1, divided_up(count, local_size));
  const std::int64_t rows = divided_up(groups, most);
  const std::int64_t columns = divided_up(groups, rows);
  if (rows > target.max_groups[1] || rows * columns * local_size > most_invocations) {
    fail_beyond_limit(
        "dispatch",
        fmt::format("expected at most {} workgroups, the device's limit, and {} invocations, got {} and {}",
                    most * target.max_groups[1], most_invocations, rows * columns, rows * columns * local_size),
        "a smaller batch takes fewer");
  }
  return {static_cast<std::uint32_t>(columns), static_cast<std::uint32_t>(rows), 1};
}

}  // namespace halfstep::plan
