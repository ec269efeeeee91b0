#include "harness/check.h"

#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "graph/ir.h"
#include "harness/device.h"
#include "harness/observe.h"
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

/// A graph that has run, and the values of its outputs.
struct Ran {
  std::unique_ptr<step::Execution> execution;
  std::vector<std::vector<double>> values;
};

/// Runs twice, and checks everything except the values.
Ran run(Built& built, const std::vector<Tensor>& outputs, const plan::Target& target) {
  std::vector<graph::ValueId> ids;
  for (const Tensor& output : outputs) ids.push_back(output.id());
  step::ExecutionOptions options;
  options.guard_bytes = 256;
  options.target = target;
  options.target->offset_alignment = 256;  // of every device: what is kept of a run is run on others too
  Ran ran{std::make_unique<step::Execution>(context(), built.ir(), ids, options), {}};
  step::Execution& execution = *ran.execution;
  for (std::size_t i = 0; i < built.values.size(); ++i) feed(execution, built.inputs[i], built.values[i]);
  execution.run();
  CHECK_MESSAGE(execution.guards_intact(), "bytes outside the tensors were written");
  std::vector<std::vector<std::byte>> memories;
  for (const Tensor& output : outputs) {
    memories.push_back(execution.memory(output.id()));
    CHECK_MESSAGE(pads_are_zero(output.type(), memories.back()), "elements past the last column are not zero");
    ran.values.push_back(numbers(execution, output));
  }
  execution.run();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CHECK_MESSAGE(execution.memory(outputs[i].id()) == memories[i], "a second run gave other bits");
  }
  return ran;
}

Observer observer;

/// The distance between two numbers of a type that are next to each other at `value`.
double unit_in_last_place(DType dtype, double value) {
  const bool narrow = is_narrow(dtype);
  const double relative = narrow ? 2 * reference::narrow(dtype).unit() : 0x1p-23;
  const double smallest = narrow ? reference::narrow(dtype).smallest() : 0x1p-149;
  if (value == 0 || !std::isfinite(value)) return smallest;
  return std::max(smallest, relative * std::exp2(std::floor(std::log2(std::abs(value)))));
}

/// The numbers at `index` of those inputs that have as many elements as the result.
std::string inputs_at(std::span<const Array> inputs, std::size_t count, std::size_t index) {
  std::string text;
  for (const Array& input : inputs) {
    if (input.values.size() == count) text += fmt::format("{}{:.9g}", text.empty() ? "" : ", ", input.values[index]);
  }
  return text;
}

bool agree(double got, double want, double allowed) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= allowed;
}

/// The values of one output, and what they should be.
struct Output {
  std::string what;  ///< "result" or "gradient of input 0"
  DType dtype;
  step::Execution& execution;
  Tensor tensor;
  std::span<const Array> inputs;
  const std::vector<double>& got;
  const Array& want;
};

/// Tells the observer of the element that is the most units in the last place from what it should be.
void tell(const Check& check, const Output& output, double largest, std::size_t wrong) {
  if (!observer) return;
  Comparison told{.check = check.name, .what = output.what, .dtype = output.dtype, .wrong = wrong};
  ObservedRun run{output.execution, output.tensor.id(), output.tensor.type(), output.want.values, {}};
  for (std::size_t i = 0; i < output.got.size(); ++i) {
    const double want = output.want.values[i];
    const double error = std::abs(output.got[i] - want);
    const double allowed = tolerance(check, output.dtype, want, largest);
    run.allowed.push_back(allowed);
    if (!std::isfinite(error)) continue;
    if (allowed > 0) told.share = std::max(told.share, error / allowed);
    const double ulps = error / unit_in_last_place(output.dtype, want);
    if (ulps <= told.ulps) continue;
    told.ulps = ulps;
    told.got = output.got[i];
    told.want = want;
    told.index = i;
  }
  told.inputs = inputs_at(output.inputs, output.got.size(), told.index);
  observer(told, run);
}

/// Whether zeros would be found to be wrong, where not all values are as good as zero.
bool tells_zeros(const Check& check, const Output& output, double largest) {
  const std::vector<double>& want = output.want.values;
  return std::ranges::all_of(want, [&](double value) { return std::abs(value) <= 1e-6 * largest; }) ||
         std::ranges::any_of(
             want, [&](double value) { return !agree(0, value, tolerance(check, output.dtype, value, largest)); });
}

void compare(const Check& check, const Output& output) {
  const auto& [what, dtype, execution, tensor, inputs, got, want] = output;
  REQUIRE(got.size() == want.values.size());
  double largest = check.magnitude;
  for (const double value : want.values) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double allowed = tolerance(check, dtype, want.values[i], largest);
    if (agree(got[i], want.values[i], allowed)) continue;
    if (wrong++ == 0)
      first = fmt::format("[{}] is {:.9g}, expected {:.9g} +- {:.3g}", i, got[i], want.values[i], allowed);
  }
  tell(check, output, largest, wrong);
  CHECK_MESSAGE(tells_zeros(check, output, largest), "the tolerance allows zeros in place of all values");
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
  const Ran ran = run(built, gradients, target);
  const std::vector<Array> known = check.gradients ? check.gradients(operands, weights) : std::vector<Array>{};
  std::size_t next = 0;
  for (std::size_t i = 0; i < check.inputs.size(); ++i) {
    if (check.inputs[i].kind != Kind::floating) continue;
    const std::string what = fmt::format("gradient of input {}", i);
    INFO(what);
    const Array want = check.gradients ? known.at(next) : differences(check, operands, weights, i);
    compare(check, {what, dtype, *ran.execution, gradients[next], operands, ran.values[next], want});
    ++next;
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
    INFO(check.name << " in " << name(dtype) << (target.cpu ? ", for a CPU" : ", for a GPU")
                    << (target.gemm_kernels.empty() ? std::string() : " by " + target.gemm_kernels));
    body(dtype, target);
  }
}

}  // namespace

void observe(Observer wanted) {
  observer = std::move(wanted);
}

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
    const Ran ran = run(built, {result}, target);
    compare(check, {"result", result.dtype(), *ran.execution, result, built.values, ran.values.front(), want});
  });
}

void check_gradient(const Check& check) {
  for_each_variant(check, [&](DType dtype, const plan::Target& target) { check_gradient_in(check, dtype, target); });
}

}  // namespace halfstep::testing
