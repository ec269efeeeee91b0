#include "samples/graphics/kernel_operator.h"

#include <memory>
#include <utility>

using namespace halfstep;

namespace samples {
namespace {

class KernelOperator final : public CustomOperator {
 public:
  explicit KernelOperator(Kernel kernel) : kernel_(std::move(kernel)) {}

  std::string name() const override { return kernel_.name; }

  std::vector<CustomAttribute> attributes() const override {
    return {{"count", kernel_.count}, {"words", std::vector<std::int64_t>(kernel_.words.begin(), kernel_.words.end())}};
  }

  std::vector<TensorType> outputs(std::span<const TensorType> /*inputs*/) const override {
    std::vector<TensorType> types;
    for (const Shape& shape : kernel_.outputs) types.push_back({DType::f32, shape});
    return types;
  }

  CustomKernels kernels(const CustomTypes& types) const override {
    CustomDispatch dispatch{.shader = kernel_.name, .spirv = kernel_.spirv};
    for (std::size_t i = 0; i < types.inputs.size(); ++i) dispatch.operands.push_back(reads_input(i));
    for (std::size_t i = 0; i < types.outputs.size(); ++i) dispatch.operands.push_back(writes_output(i));
    std::vector<std::uint32_t> words{static_cast<std::uint32_t>(kernel_.count)};
    words.insert(words.end(), kernel_.words.begin(), kernel_.words.end());
    const auto bytes = std::as_bytes(std::span(words));
    dispatch.push.assign(bytes.begin(), bytes.end());
    dispatch.invocations = kernel_.count;
    dispatch.rounds = kernel_.rounds;
    dispatch.flops = kernel_.flops * static_cast<double>(kernel_.count);
    return {.dispatches = {dispatch}};
  }

  bool keeps_types() const override { return true; }

 private:
  Kernel kernel_;
};

}  // namespace

std::vector<Tensor> apply(const Kernel& kernel, const std::vector<Tensor>& inputs) {
  return apply_operator(std::make_shared<KernelOperator>(kernel), inputs);
}

}  // namespace samples
