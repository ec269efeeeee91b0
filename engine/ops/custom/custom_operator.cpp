#include <halfstep/custom_operator.h>
#include <halfstep/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "graph/ir.h"
#include "graph/operator.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

using Kind = CustomOperand::Kind;
using Use = CustomOperand::Use;

std::string_view name_of(Kind kind) {
  return kind == Kind::input ? "input" : kind == Kind::output ? "output" : "workspace";
}

plan::Access access_of(Use use) {
  if (use == Use::read) return plan::Access::read;
  return use == Use::write ? plan::Access::write : plan::Access::read_write;
}

/// Lowers the kernels that an application describes.
class Kernels {
 public:
  Kernels(plan::Lowering& out, const CustomOperator& op) : out_(out) {
    CustomTypes types;
    for (std::size_t i = 0; i < out.input_count(); ++i) types.inputs.push_back(out.input_type(i));
    for (std::size_t i = 0; i < out.output_count(); ++i) types.outputs.push_back(out.type(out.output(i)));
    kernels_ = op.kernels(types);
    for (const TensorType& type : kernels_.workspaces) {
      if (std::ranges::any_of(type.shape, [](std::int64_t extent) { return extent < 1; })) {
        fail(out.label(), fmt::format("expected workspaces of positive extents, got {}", to_string(type)));
      }
      const std::size_t number = workspaces_.size();  // names differ, as noise does by names
      workspaces_.push_back(out.workspace(number == 0 ? "workspace" : fmt::format("workspace{}", number), type));
    }
  }

  void lower() {
    for (const CustomDispatch& dispatch : kernels_.dispatches) append(dispatch);
    for (std::size_t i = 0; i < out_.output_count(); ++i) {
      if (!std::ranges::any_of(written_, [&](std::size_t output) { return output == i; })) {
        fail(out_.label(), fmt::format("expected a dispatch that writes output {}, got none", i));
      }
    }
  }

 private:
  void append(const CustomDispatch& dispatch) {
    constexpr std::int64_t most_invocations = std::int64_t{1} << 32;
    if (dispatch.invocations < 1 || dispatch.invocations > most_invocations) {
      fail(out_.label(), fmt::format("expected 1 to {} invocations of {}, got {}", most_invocations, dispatch.shader,
                                     dispatch.invocations));
    }
    if (!(dispatch.flops >= 0 && std::isfinite(dispatch.flops)) || dispatch.rounds < 0) {
      fail(out_.label(), fmt::format("expected finite flops and rounds of 0 or more for {}, got {} and {}",
                                     dispatch.shader, dispatch.flops, dispatch.rounds));
    }
    if (dispatch.push.size() % sizeof(std::uint32_t) != 0) {
      fail(out_.label(), fmt::format("expected push constants of whole words for {}, got {} bytes", dispatch.shader,
                                     dispatch.push.size()));
    }
    plan::Dispatch made;
    for (const CustomOperand& operand : dispatch.operands) made.operands.push_back(operand_of(dispatch, operand));
    const std::string_view storage = plan::storage(out_.target(), storage_of(dispatch, made));
    const std::uint32_t local_size =
        dispatch.local_size == 0 ? plan::flat_local_size(out_.target()) : dispatch.local_size;
    made.shader = fmt::format("{}.{}", dispatch.shader, storage);
    made.constants = {local_size};
    made.constants.insert(made.constants.end(), dispatch.constants.begin(), dispatch.constants.end());
    made.push = dispatch.push;
    made.groups = plan::groups_for(out_.target(), dispatch.invocations, local_size);
    made.rounds = dispatch.rounds;
    made.flops = dispatch.flops;
    made.stores_by_itself = dispatch.stores_by_itself;
    made.spirv = spirv_of(dispatch, storage);
    out_.dispatch(std::move(made));
  }

  plan::Operand operand_of(const CustomDispatch& dispatch, const CustomOperand& operand) {
    const std::size_t count = operand.kind == Kind::input    ? out_.input_count()
                              : operand.kind == Kind::output ? out_.output_count()
                                                             : workspaces_.size();
    const std::string_view kind = name_of(operand.kind);
    if (operand.index >= count) {
      fail(out_.label(), fmt::format("expected an operand of {} among the {} {}s, got {} {}", dispatch.shader, count,
                                     kind, kind, operand.index));
    }
    if (operand.kind == Kind::input && operand.use != Use::read) {
      fail(out_.label(),
           fmt::format("expected inputs to be read only, got {} that writes input {}", dispatch.shader, operand.index));
    }
    if (operand.kind == Kind::output && operand.use != Use::read) written_.push_back(operand.index);
    const plan::TensorId tensor = operand.kind == Kind::input    ? out_.input(operand.index)
                                  : operand.kind == Kind::output ? out_.output(operand.index)
                                                                 : workspaces_[operand.index];
    return {.tensor = tensor, .access = access_of(operand.use)};
  }

  /// The narrow type among its operands, or f32.
  DType storage_of(const CustomDispatch& dispatch, const plan::Dispatch& made) const {
    DType storage = DType::f32;
    for (const plan::Operand& operand : made.operands) {
      const DType dtype = out_.type(operand.tensor).dtype;
      if (!is_narrow(dtype) || dtype == storage) continue;
      if (storage != DType::f32) {
        fail(out_.label(), fmt::format("expected one narrow type among the operands of {}, got {} and {}",
                                       dispatch.shader, name(storage), name(dtype)));
      }
      storage = dtype;
    }
    return storage;
  }

  std::shared_ptr<const std::vector<std::uint32_t>> spirv_of(const CustomDispatch& dispatch,
                                                             std::string_view storage) const {
    const auto found = dispatch.spirv.find(std::string(storage));
    if (found != dispatch.spirv.end()) return std::make_shared<const std::vector<std::uint32_t>>(found->second);
    std::vector<std::string> types;
    for (const auto& [type, words] : dispatch.spirv) types.push_back(type);
    fail(out_.label(), fmt::format("expected SPIR-V of {} for the storage type {}, got {}", dispatch.shader, storage,
                                   types.empty() ? "none" : fmt::format("{}", fmt::join(types, ", "))));
  }

  plan::Lowering& out_;
  CustomKernels kernels_;
  std::vector<plan::TensorId> workspaces_;
  std::vector<std::size_t> written_;  ///< outputs
};

/// The engine's view of an application's operator.
class Adapter final : public graph::Operator {
 public:
  explicit Adapter(std::shared_ptr<const CustomOperator> op) : op_(std::move(op)) {}

  std::string name() const override { return op_->name(); }
  bool reads_results() const override { return true; }

  graph::Attributes attributes() const override {
    graph::Attributes attributes;
    for (const CustomAttribute& attribute : op_->attributes()) attributes.push_back({attribute.name, attribute.value});
    return attributes;
  }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    std::vector<TensorType> outputs = op_->outputs(inputs);
    if (outputs.empty()) fail(name(), "expected an operator of at least 1 output, got none");
    for (const TensorType& type : outputs) {
      if (std::ranges::any_of(type.shape, [](std::int64_t extent) { return extent < 1; })) {
        fail(name(), fmt::format("expected outputs of positive extents, got {}", to_string(type)));
      }
    }
    return outputs;
  }

  graph::Gradients vjp(const graph::Vjp& call) const override {
    const graph::Gradients gradients =
        op_->gradients({call.inputs, call.outputs, call.cotangents, call.needed, call.loss_scale});
    if (gradients.size() != call.inputs.size()) {
      fail(name(), fmt::format("expected a gradient, or nothing, for each of {} inputs, got {}", call.inputs.size(),
                               gradients.size()));
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i]) continue;
      graph::expect_value(name(), fmt::format("the gradient of input {}", i), graph::ir_of(call.inputs[i]),
                          *gradients[i], "CustomOperator::gradients returns it");
    }
    return gradients;
  }

  void lower(plan::Lowering& out) const override { Kernels(out, *op_).lower(); }
  graph::Numerics numerics() const override {
    return op_->keeps_types() ? graph::Numerics::as_is : graph::Numerics::other;
  }

 private:
  std::shared_ptr<const CustomOperator> op_;
};

}  // namespace

std::vector<std::optional<Tensor>> CustomOperator::gradients(const CustomGradientCall& /*call*/) const {
  fail(name(), "expected an operator with a gradient, got one without", "override CustomOperator::gradients");
}

std::vector<Tensor> apply_operator(std::shared_ptr<const CustomOperator> op, std::span<const Tensor> inputs) {
  if (op == nullptr) fail("apply_operator", "expected an operator, got none");
  if (inputs.empty()) fail(op->name(), "expected at least 1 input, got none");
  return graph::apply(std::make_shared<Adapter>(std::move(op)), inputs);
}

}  // namespace halfstep
