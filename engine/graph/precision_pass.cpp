#include "graph/precision_pass.h"

#include <halfstep/ops.h>

#include <map>

namespace halfstep::graph {
namespace {

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16;
}

class Pass {
 public:
  Pass(const Ir& written, const Precision& precision) : written_(written), compute_(precision.compute) {}

  LoweredPrecision run() {
    find_wide_inputs();
    result_.value.resize(written_.values.size());
    for (ValueId id = 0; id < written_.values.size(); ++id) {
      if (written_.values[id].origin != Origin::node) result_.value[id] = leaf(id);
    }
    for (const Node& node : written_.nodes) rewrite(node);
    for (const Update& update : written_.updates) {
      result_.ir.updates.push_back({result_.value[update.state], in_f32(result_.value[update.next])});
    }
    return std::move(result_);
  }

 private:
  /// An input that only as-is operators read (the target of a loss, say) stays as it was declared.
  void find_wide_inputs() {
    computed_with_.assign(written_.values.size(), false);
    for (const Node& node : written_.nodes) {
      if (node.op->numerics() != Numerics::compute) continue;
      for (const ValueId input : node.inputs) computed_with_[input] = true;
    }
  }

  ValueId leaf(ValueId id) {
    Value value = written_.values[id];
    const bool narrow = value.origin == Origin::parameter || (value.origin == Origin::input && computed_with_[id]);
    if (narrow && is_floating(value.type.dtype)) value.type.dtype = compute_;
    return result_.ir.add_value(std::move(value));
  }

  Tensor in_compute_type(ValueId id) {
    const Tensor tensor = result_.ir.tensor(id);
    if (result_.ir.values[id].origin == Origin::state) return tensor;
    if (!is_floating(tensor.dtype()) || tensor.dtype() == compute_) return tensor;
    const auto found = casts_.find(id);
    if (found != casts_.end()) return result_.ir.tensor(found->second);
    const Tensor narrowed = cast(tensor, compute_);
    casts_[id] = narrowed.id();
    return narrowed;
  }

  ValueId in_f32(ValueId id) {
    const Tensor tensor = result_.ir.tensor(id);
    return tensor.dtype() == DType::f32 ? id : cast(tensor, DType::f32).id();
  }

  void rewrite(const Node& node) {
    std::vector<Tensor> inputs;
    for (const ValueId input : node.inputs) {
      const ValueId now = result_.value[input];
      const bool as_is = node.op->numerics() == Numerics::as_is;
      inputs.push_back(as_is ? result_.ir.tensor(now) : in_compute_type(now));
    }
    const std::vector<Tensor> outputs = graph::apply(node.op, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) result_.value[node.outputs[i]] = outputs[i].id();
  }

  const Ir& written_;
  DType compute_;
  LoweredPrecision result_;
  std::vector<bool> computed_with_;
  std::map<ValueId, ValueId> casts_;
};

}  // namespace

LoweredPrecision apply_precision(const Ir& written, const Precision& precision) {
  return Pass(written, precision).run();
}

}  // namespace halfstep::graph
