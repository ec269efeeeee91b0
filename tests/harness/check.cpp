#include "harness/check.h"

#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "graph/ir.h"
#include "harness/device.h"
#include "harness/values.h"
#include "passes/backward.h"
#include "plan/layout.h"
#include "reference/narrow.h"
#include "step/execution.h"

namespace halfstep::testing {
namespace {

using reference::Array;

DType dtype_of(const Operand& operand, DType dtype) {
  if (operand.kind == Kind::labels) return DType::u32;
  return operand.kind == Kind::state ? DType::f32 : dtype;
}

/// A graph with the inputs of a check, in one precision.
struct Built {
  Graph graph = settled_graph();
  std::vector<Tensor> inputs;
  std::vector<Array> values;  ///< rounded as the device reads them

  Built(const Check& check, DType dtype) {
    for (const Operand& operand : check.inputs) {
      const DType type = dtype_of(operand, dtype);
      inputs.push_back(graph.input(fmt::format("input{}", inputs.size()), operand.values.shape, type));
      values.push_back(rounded(operand.values, type));
    }
  }

  graph::Ir& ir() { return graph::ir_of(inputs.front()); }
};

void feed(step::Execution& execution, Tensor tensor, const Array& array) {
  if (tensor.dtype() == DType::u32) {
    execution.set(tensor.id(), std::vector<std::uint32_t>(array.values.begin(), array.values.end()));
  } else {
    std::vector<float> values(array.values.size());
    std::ranges::transform(array.values, values.begin(), [](double v) { return static_cast<float>(v); });
    execution.set(tensor.id(), values);
  }
}

bool pads_are_zero(const TensorType& type, std::span<const std::byte> memory) {
  const plan::Layout lay = plan::layout(type.shape);
  const auto size = static_cast<std::size_t>(bytes(type.dtype));
  for (std::int64_t row = 0; row < lay.rows; ++row) {
    const auto begin = static_cast<std::size_t>(row * lay.pitch + lay.columns) * size;
    const auto end = static_cast<std::size_t>((row + 1) * lay.pitch) * size;
    const auto pad = memory.subspan(begin, end - begin);
    // Zero may be negative.
    for (std::size_t i = 0; i < pad.size(); ++i) {
      const bool top = i % size == size - 1;
      if ((pad[i] & std::byte{static_cast<unsigned char>(top ? 0x7F : 0xFF)}) != std::byte{0}) return false;
    }
  }
  return true;
}

std::vector<double> numbers(step::Execution& execution, Tensor tensor) {
  if (tensor.dtype() == DType::u32) {
    const std::vector<std::uint32_t> words = execution.words(tensor.id());
    return {words.begin(), words.end()};
  }
  const std::vector<float> floats = execution.floats(tensor.id());
  return {floats.begin(), floats.end()};
}

/// Runs twice, checks everything except the values, and returns the values for each of `outputs`.
std::vector<std::vector<double>> run(Built& built, const std::vector<Tensor>& outputs, const plan::Target& target) {
  std::vector<graph::ValueId> ids;
  for (const Tensor& output : outputs) ids.push_back(output.id());
  step::ExecutionOptions options;
  options.guard_bytes = 256;
  options.target = target;
  options.pipelines = pipelines();
  step::Execution execution(context(), built.ir(), ids, options);
  for (std::size_t i = 0; i < built.values.size(); ++i) feed(execution, built.inputs[i], built.values[i]);
  execution.run();
  CHECK_MESSAGE(execution.guards_intact(), "bytes outside the tensors were written");
  std::vector<std::vector<double>> results;
  std::vector<std::vector<std::byte>> memories;
  for (const Tensor& output : outputs) {
    memories.push_back(execution.memory(output.id()));
    CHECK_MESSAGE(pads_are_zero(output.type(), memories.back()), "elements past the last column are not zero");
    results.push_back(numbers(execution, output));
  }
  execution.run();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CHECK_MESSAGE(execution.memory(outputs[i].id()) == memories[i], "a second run gave other bits");
  }
  return results;
}

bool agree(double got, double want, double allowed) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= allowed;
}

void compare(const Check& check, DType dtype, const std::vector<double>& got, const Array& want) {
  REQUIRE(got.size() == want.values.size());
  double largest = check.magnitude;
  for (const double value : want.values) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double allowed = tolerance(check, dtype, want.values[i], largest);
    if (agree(got[i], want.values[i], allowed)) continue;
    if (wrong++ == 0) first = fmt::format("[{}] is {}, expected {} +- {}", i, got[i], want.values[i], allowed);
  }
  CHECK_MESSAGE(wrong == 0, wrong << " of " << got.size() << " are wrong, first " << first);
}

/// The sum of a result times `weights`, as in the device's graph.
double objective(const Check& check, std::span<const Array> inputs, const Array& weights) {
  const Array result = check.reference(inputs);
  double total = 0;
  for (std::size_t i = 0; i < result.values.size(); ++i) total += result.values[i] * weights.values[i];
  return total;
}

/// Central differences of the objective for every element of input `which`.
Array differences(const Check& check, std::vector<Array> inputs, const Array& weights, std::size_t which) {
  constexpr double h = 1e-5;
  Array gradient(inputs[which].shape);
  for (std::size_t i = 0; i < gradient.values.size(); ++i) {
    double& x = inputs[which].values[i];
    const double kept = x;
    x = kept + h;
    const double above = objective(check, inputs, weights);
    x = kept - h;
    const double below = objective(check, inputs, weights);
    x = kept;
    gradient.values[i] = (above - below) / (2 * h);
  }
  return gradient;
}

void check_gradient_in(const Check& check, DType dtype, const plan::Target& target) {
  Built built(check, dtype);
  const Tensor result = check.build(built.inputs);
  const bool scalar = result.rank() == 0;
  const Array weights = scalar ? Array({}, {2.0}) : rounded(uniform(result.shape(), 99), dtype);
  const Tensor weight = built.graph.input("weights", weights.shape, result.dtype());
  const Tensor loss = scalar ? result : sum(mul(result, weight));
  const Tensor seed = scalar ? weight : built.graph.input("seed", {}, loss.dtype());
  std::vector<Tensor> wanted;
  for (std::size_t i = 0; i < check.inputs.size(); ++i) {
    if (check.inputs[i].kind == Kind::floating) wanted.push_back(built.inputs[i]);
  }
  std::vector<graph::ValueId> ids;
  for (const Tensor& tensor : wanted) ids.push_back(tensor.id());
  std::vector<Tensor> gradients;
  for (const graph::ValueId id : passes::add_backward(built.ir(), loss.id(), seed.id(), ids)) {
    gradients.push_back(built.ir().tensor(id));
  }
  const std::vector<Array> operands = built.values;
  built.inputs.push_back(weight);
  built.values.push_back(weights);
  if (!scalar) {
    built.inputs.push_back(seed);
    built.values.push_back(Array({}, {1.0}));
  }
  const std::vector<std::vector<double>> got = run(built, gradients, target);
  const std::vector<Array> known = check.gradients ? check.gradients(operands, weights) : std::vector<Array>{};
  std::size_t next = 0;
  for (std::size_t i = 0; i < check.inputs.size(); ++i) {
    if (check.inputs[i].kind != Kind::floating) continue;
    INFO("gradient of input " << i);
    compare(check, dtype, got[next], check.gradients ? known.at(next) : differences(check, operands, weights, i));
    next++;
  }
}

/// The types that a check runs in. HALFSTEP_TIER=native changes only how f16 is stored, and HALFSTEP_LIMITS limits
/// kernels that are those of every type: f32 and bf16 would run the same kernels again.
std::vector<DType> dtypes_of(const Check& check) {
  const bool has_f16 = std::ranges::find(check.dtypes, DType::f16) != check.dtypes.end();
  const vk::Settings& settings = context().settings();
  return has_f16 && (!settings.limits.empty() || settings.tier == "native") ? std::vector{DType::f16} : check.dtypes;
}

/// bf16 is read in words on every target. So the kernels of the first target are those of the others too, but for
/// products', whose own tests name their targets.
bool is_repeated(const Check& check, DType dtype, bool first) {
  return dtype == DType::bf16 && check.targets.empty() && !first;
}

std::vector<Variant> variants_of(const Check& check) {
  std::vector<Variant> variants;
  const std::vector<plan::Target> all = check.targets.empty() ? targets() : check.targets;
  for (const plan::Target& target : all) {
    for (const DType dtype : dtypes_of(check)) {
      if (!is_repeated(check, dtype, &target == &all.front())) variants.push_back({target, dtype});
    }
  }
  return variants;
}

/// How many of its variants each check but the first of a test case runs in. A software driver takes far longer to
/// compile kernels than to run them: there it is every third, in turns, so that the checks of a case together run in
/// all.
std::size_t wanted_of(std::size_t variants) {
  return !context().target().cpu || every_variant() ? variants : (variants + 2) / 3;
}

template <typename Body>
void for_each_variant(const Check& check, const Body& body) {
  static const void* last_case = nullptr;
  static std::size_t turn = 0;
  const void* const this_case = doctest::getContextOptions()->currentTest;
  turn = this_case == last_case ? turn + 1 : 0;
  last_case = this_case;
  const std::vector<Variant> variants = variants_of(check);
  const std::size_t wanted = turn == 0 ? variants.size() : wanted_of(variants.size());
  // A prime larger than the number of variants: every one has its turn, whatever pattern the checks themselves follow.
  const std::size_t first = turn * 101;
  for (std::size_t i = 0; i < wanted; ++i) {
    const auto& [target, dtype] = variants[(first + i) % variants.size()];
    INFO(check.name << " in " << name(dtype) << (target.cpu ? ", for a CPU " : ", for a GPU ") << target.gemm_kernels);
    body(dtype, target);
  }
}

}  // namespace

std::vector<Variant> variants() {
  return variants_of({});
}

double tolerance(const Check& check, DType dtype, double want, double largest) {
  const double arithmetic = check.arithmetic * largest;
  if (!is_narrow(dtype)) return arithmetic;
  const reference::Narrow& type = reference::narrow(dtype);
  const double unit = type.unit();
  return arithmetic + unit * std::abs(want) + unit * largest * (check.roundings - 1) + type.smallest() / 2;
}

void check_operator(const Check& check) {
  for_each_variant(check, [&](DType dtype, const plan::Target& target) {
    Built built(check, dtype);
    const Tensor result = check.build(built.inputs);
    const Array want = check.reference(built.values);
    REQUIRE(result.shape() == want.shape);
    compare(check, result.dtype(), run(built, {result}, target).front(), want);
  });
}

void check_gradient(const Check& check) {
  for_each_variant(check, [&](DType dtype, const plan::Target& target) { check_gradient_in(check, dtype, target); });
}

}  // namespace halfstep::testing
