// Operators of the application, with their own kernels.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <odd_block.spirv.h>
#include <odd_constants.spirv.h>
#include <scaled_square.spirv.h>
#include <scaled_square_gradient.spirv.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "plan/layout.h"
#include "reference/array.h"
#include "train/step_graph.h"
#include "vk/shader/pair_access.h"
#include "vk/shader/spirv.h"
#include "vk/shader/texel_reads.h"

using namespace halfstep;
using reference::Array;
using testing::Check;

namespace {

using Change = std::function<void(CustomKernels&)>;

CustomDispatch flat(const char* shader, std::map<std::string, std::vector<std::uint32_t>> spirv,
                    std::vector<CustomOperand> operands, const Shape& shape) {
  const plan::Layout layout = plan::layout(shape);
  return {.shader = shader,
          .spirv = std::move(spirv),
          .operands = std::move(operands),
          .constants = {static_cast<std::uint32_t>(layout.quads_per_row())},
          .push = push_constants(static_cast<std::uint32_t>(layout.quads())),
          .invocations = layout.quads()};
}

/// dx and the terms of ds, from x {n, c}, s {c} and dy {n, c}.
class ScaledSquareGradient final : public CustomOperator {
 public:
  std::string name() const override { return "scaled_square_gradient"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0], inputs[0]}; }
  CustomKernels kernels(const CustomTypes& types) const override {
    return {.dispatches = {flat("scaled_square_gradient", halfstep_kernels::scaled_square_gradient(),
                                {reads_input(0), reads_input(1), reads_input(2), writes_output(0), writes_output(1)},
                                types.inputs[0].shape)}};
  }
};

/// y = s x^2.
class ScaledSquare final : public CustomOperator {
 public:
  explicit ScaledSquare(Change change = {}, bool differentiable = true)
      : change_(std::move(change)), differentiable_(differentiable) {}

  std::string name() const override { return "scaled_square"; }
  std::vector<CustomAttribute> attributes() const override { return {{"power", std::int64_t{2}}}; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override {
    if (inputs.size() != 2 || inputs[1].shape != Shape{inputs[0].shape.back()}) {
      fail(name(), "expected x {n, c} and s {c}, got other shapes");
    }
    return {inputs[0]};
  }
  CustomKernels kernels(const CustomTypes& types) const override {
    CustomKernels kernels{
        .dispatches = {flat("scaled_square", halfstep_kernels::scaled_square(),
                            {reads_input(0), reads_input(1), writes_output(0)}, types.inputs[0].shape)}};
    if (change_) change_(kernels);
    return kernels;
  }
  std::vector<std::optional<Tensor>> gradients(const CustomGradientCall& call) const override {
    if (!differentiable_) return CustomOperator::gradients(call);
    const Tensor inputs[] = {call.inputs[0], call.inputs[1], *call.gradients[0]};
    const std::vector<Tensor> parts = apply_operator(std::make_shared<ScaledSquareGradient>(), inputs);
    return {parts[0], sum(parts[1], {0})};
  }

 private:
  Change change_;
  bool differentiable_;
};

Tensor scaled_square(Tensor x, Tensor s) {
  const Tensor inputs[] = {x, s};
  return apply_operator(std::make_shared<ScaledSquare>(), inputs)[0];
}

/// The shapes of its results change from one call to the next.
class Moody final : public CustomOperator {
 public:
  explicit Moody(std::vector<std::vector<Shape>> answers) : answers_(std::move(answers)) {}

  std::string name() const override { return "moody"; }
  std::vector<TensorType> outputs(std::span<const TensorType>) const override {
    std::vector<TensorType> types;
    for (const Shape& shape : answers_[std::min(calls_++, answers_.size() - 1)]) types.push_back({DType::f32, shape});
    return types;
  }
  CustomKernels kernels(const CustomTypes&) const override { return {}; }

 private:
  std::vector<std::vector<Shape>> answers_;
  mutable std::size_t calls_ = 0;
};

/// Its first input is the gradient for its second one, times the loss scale by choice.
class Injected final : public CustomOperator {
 public:
  explicit Injected(bool scaled = false) : scaled_(scaled) {}

  std::string name() const override { return square_.name(); }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return square_.outputs(inputs); }
  CustomKernels kernels(const CustomTypes& types) const override { return square_.kernels(types); }
  std::vector<std::optional<Tensor>> gradients(const CustomGradientCall& call) const override {
    const Tensor x = call.inputs[0];
    return {std::nullopt, scaled_ ? cast(mul(cast(x, DType::f32), call.loss_scale), x.dtype()) : x};
  }

 private:
  bool scaled_;
  ScaledSquare square_;
};

Check check_of(std::int64_t rows, std::int64_t columns) {
  return {.name = "scaled_square",
          .build = [](std::span<const Tensor> inputs) { return scaled_square(inputs[0], inputs[1]); },
          .inputs = {{testing::uniform({rows, columns}, 1)}, {testing::uniform({columns}, 2)}},
          .reference =
              [](std::span<const Array> inputs) {
                Array y = inputs[0];
                for (std::size_t i = 0; i < y.values.size(); ++i) {
                  y.values[i] *= y.values[i] * inputs[1].values[i % y.extent(1)];
                }
                return y;
              },
          .magnitude = 1 + 0.1 * static_cast<double>(rows),
          .roundings = 2};
}

/// The error of compiling with what `change` makes of the kernels.
std::string refusal(const Change& change, bool differentiable = true) {
  Graph graph;
  const Tensor inputs[] = {graph.input("x", {3, 5}), graph.root().parameter("s", {5}, constant(1))};
  const Tensor y = apply_operator(std::make_shared<ScaledSquare>(change, differentiable), inputs)[0];
  try {
    Trainer::compile(testing::device(), graph,
                     {.loss = mean(y), .optimizer = Sgd{}, .precision = Precision::float32()});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string first_refusal(const std::function<void(CustomDispatch&)>& change) {
  return refusal([&](CustomKernels& kernels) { change(kernels.dispatches[0]); });
}

/// The error of compiling with a changed word, `at` from the beginning, of the first instruction that `wanted` finds.
std::string word_refusal(const std::function<bool(const vk::Instruction&)>& wanted, std::size_t at,
                         std::uint32_t value) {
  return first_refusal([&](CustomDispatch& d) {
    std::vector<std::uint32_t>& words = d.spirv["f32"];
    std::size_t place = 0;
    vk::for_each_instruction(words, [&](const vk::Instruction& i) {
      if (place == 0 && wanted(i)) place = static_cast<std::size_t>(i.words.data() - words.data()) + at;
    });
    REQUIRE(place != 0);
    words[place] = value;
  });
}

std::string set_refusal(std::uint32_t set) {
  const auto is_set = [](const vk::Instruction& i) {
    return i.opcode == vk::op_decorate && i.operand(2) == vk::decoration_descriptor_set;
  };
  return word_refusal(is_set, 3, set);
}

/// The error of compiling with a kernel that declares a capability of SPIR-V.
std::string capability_refusal(std::uint32_t capability) {
  return first_refusal([&](CustomDispatch& d) {
    constexpr std::ptrdiff_t header_words = 5;
    std::vector<std::uint32_t>& words = d.spirv["f32"];
    words.insert(words.begin() + header_words, {2U << 16U | vk::op_capability, capability});
  });
}

std::string constants_refusal(const std::vector<std::uint32_t>& constants) {
  return first_refusal([&](CustomDispatch& d) {
    d.spirv = halfstep_kernels::odd_constants();
    d.constants = constants;
  });
}

}  // namespace

TEST_CASE("an application's own operator, its kernels and its gradient, in every type") {
  testing::check_operator(check_of(33, 7));
  testing::check_operator(check_of(1, 1));
  testing::check_gradient(check_of(17, 5));
}

TEST_CASE("an application's own operator: a result that goes over a workspace") {
  Graph graph;
  const Tensor inputs[] = {graph.input("x", {2, 3}), graph.input("s", {3})};
  const Change twice = [](CustomKernels& kernels) {
    kernels.workspaces = {{DType::f32, {2, 3}}};
    kernels.dispatches.push_back(kernels.dispatches[0]);
    kernels.dispatches[0].operands[2] = {CustomOperand::Kind::workspace, 0, CustomOperand::Use::write};
    kernels.dispatches[1].operands[0] = {CustomOperand::Kind::workspace, 0, CustomOperand::Use::read};
  };
  const Tensor y = apply_operator(std::make_shared<ScaledSquare>(twice), inputs)[0];
  Predictor predictor = Predictor::compile(testing::device(), graph, y);
  const float x[] = {1, 2, 3, 4, 5, 6};
  const float s[] = {1, 2, 0.5F};
  const std::vector<float> got = predictor.run({{"x", std::span(x)}, {"s", std::span(s)}});
  CHECK(got == std::vector<float>{1, 128, 10.125F, 256, 5000, 162});
}

TEST_CASE("an application's own operator: a workspace may be a scalar") {
  CHECK(refusal([](CustomKernels& kernels) { kernels.workspaces = {{DType::f32, {}}}; }).empty());
}

TEST_CASE("an application's own operator: a gradient may be what the forward pass computes") {
  const std::vector<float> values{1, -2, 0.5F, 4, -3, 1, 2, 0.5F, -4, 3};
  for (const std::int64_t micro_batches : {1, 2}) {
    CAPTURE(micro_batches);
    Graph graph;
    const Tensor inputs[] = {scale(graph.input("x", {5}), 2), graph.root().parameter("w", {5}, constant(1))};
    const Tensor y = apply_operator(std::make_shared<Injected>(), inputs)[0];
    Trainer trainer = Trainer::compile(testing::device(), graph,
                                       {.loss = sum(y),
                                        .optimizer = Sgd{.rate = 1.0F},
                                        .accumulate = micro_batches,
                                        .precision = Precision::float32()});
    trainer.step({{"x", std::span(values).first(static_cast<std::size_t>(5 * micro_batches))}});
    trainer.finish();
    const std::vector<float> moved = trainer.parameter("w");
    for (std::size_t i = 0; i < 5; ++i) {
      const float gradient = micro_batches == 1 ? 2 * values[i] : values[i] + values[i + 5];
      CHECK(moved[i] == 1 - gradient);
    }
  }
}

TEST_CASE("an application's own operator: a gradient from elsewhere is multiplied by the loss scale") {
  const std::vector<float> values{1, -2, 0.5F, 4, -3, 1, 2, 0.5F, -4, 3};
  for (const LossScale& scale : {LossScale::none(), LossScale::fixed(1024), LossScale::dynamic(2048)}) {
    for (Precision precision : {Precision::float32(), Precision::mixed()}) {
      for (const std::int64_t micro_batches : {1, 2}) {
        CAPTURE(scale.initial);
        CAPTURE(precision.name);
        CAPTURE(micro_batches);
        precision.loss_scale = scale;
        Graph graph;
        const Tensor inputs[] = {graph.input("x", {5}), graph.root().parameter("w", {5}, constant(1))};
        const Tensor y = apply_operator(std::make_shared<Injected>(true), inputs)[0];
        Trainer trainer = Trainer::compile(
            testing::device(), graph,
            {.loss = sum(y), .optimizer = Sgd{.rate = 1.0F}, .accumulate = micro_batches, .precision = precision});
        trainer.step({{"x", std::span(values).first(static_cast<std::size_t>(5 * micro_batches))}});
        trainer.finish();
        const std::vector<float> moved = trainer.parameter("w");
        for (std::size_t i = 0; i < 5; ++i) {
          CHECK(moved[i] == 1 - (micro_batches == 1 ? values[i] : (values[i] + values[i + 5]) / 2));
        }
      }
    }
  }
}

TEST_CASE("an application's own operator: what it may read again is not stored times a scale") {
  Graph graph;
  TrainerOptions options{
      .loss = mean(scaled_square(graph.root().parameter("x", {3, 5}, constant(1)), graph.input("s", {5})))};
  options.precision.gradient_scales = GradientScales::per_tensor;
  const step::StepGraph step = train::training_graph(graph, options);
  const graph::Value& gradient = step.ir.values[step.parameter_gradients.front()];
  CHECK(step.ir.nodes[gradient.producer].op->name() == "scale");
}

TEST_CASE("what is wrong with an application's own operator is said when it is applied or compiled") {
  CHECK(refusal({}).empty());
  Graph graph;
  const Tensor x[] = {graph.input("x", {3, 5}), graph.input("y", {3, 5})};
  CHECK_THROWS_WITH_AS(apply_operator(nullptr, x), "[apply_operator] expected an operator, got none", Error);
  CHECK_THROWS_WITH_AS(apply_operator(std::make_shared<ScaledSquare>(), {}),
                       "[scaled_square] expected at least 1 input, got none", Error);
  CHECK_THROWS_WITH_AS(apply_operator(std::make_shared<ScaledSquare>(), x),
                       "[scaled_square] expected x {n, c} and s {c}, got other shapes", Error);
  CHECK(refusal({}, false) ==
        "[scaled_square] expected an operator with a gradient, got one without. Hint: override "
        "CustomOperator::gradients");
  CHECK(first_refusal([](CustomDispatch& d) { d.spirv.erase("f32"); }) ==
        "[scaled_square] expected SPIR-V of scaled_square for the storage type f32, got bf16, f16, packed");
  CHECK(first_refusal([](CustomDispatch& d) {
          d.spirv["f32"].pop_back();
        }).find("[shader] expected valid SPIR-V for Vulkan 1.1 of scaled_square.f32, got a fault: ") == 0);
  CHECK(first_refusal([](CustomDispatch& d) {
          d.spirv["f32"] = {1, 2, 3};
        }).find("expected SPIR-V") != std::string::npos);
  CHECK(first_refusal([](CustomDispatch& d) { d.invocations = 0; }) ==
        "[scaled_square] expected 1 to 4294967296 invocations of scaled_square, got 0");
  CHECK(first_refusal([](CustomDispatch& d) { d.invocations = std::numeric_limits<std::int64_t>::max(); }) ==
        "[scaled_square] expected 1 to 4294967296 invocations of scaled_square, got 9223372036854775807");
  CHECK(first_refusal([](CustomDispatch& d) { d.flops = std::numeric_limits<double>::quiet_NaN(); }) ==
        "[scaled_square] expected finite flops and rounds of 0 or more for scaled_square, got nan and 0");
  CHECK(first_refusal([](CustomDispatch& d) { d.rounds = -1; }) ==
        "[scaled_square] expected finite flops and rounds of 0 or more for scaled_square, got 0 and -1");
  CHECK(first_refusal([](CustomDispatch& d) { d.operands[1].index = 2; }) ==
        "[scaled_square] expected an operand of scaled_square among the 2 inputs, got input 2");
  CHECK(first_refusal([](CustomDispatch& d) { d.operands[0].use = CustomOperand::Use::read_write; }) ==
        "[scaled_square] expected inputs to be read only, got scaled_square that writes input 0");
  CHECK(first_refusal([](CustomDispatch& d) { d.operands[2].use = CustomOperand::Use::read; }) ==
        "[scaled_square] expected a dispatch that writes output 0, got none");
  CHECK(first_refusal([](CustomDispatch& d) { std::swap(d.operands[1], d.operands[2]), d.operands.pop_back(); }) ==
        "[scaled_square] expected an operand for each of the 3 bindings of scaled_square.f32, got 2");
  CHECK(first_refusal([](CustomDispatch& d) { d.spirv["f32"] = vk::with_texel_reads(d.spirv["f32"], 1); }) ==
        "[scaled_square] expected binding 0 of scaled_square.f32 to be a storage buffer, got a texel buffer");
  const std::string of_pairs =
      first_refusal([](CustomDispatch& d) { d.spirv["f32"] = vk::with_pair_access(d.spirv["f32"]); });
  const bool has_integers = testing::context().capabilities().buffer_address;  // of 64 bits
  CHECK(of_pairs.empty() == has_integers);
  if (!has_integers)
    CHECK(of_pairs.starts_with(
        "[scaled_square] expected a device that was opened with 64-bit integers for scaled_square.f32"));
  CHECK(first_refusal([](CustomDispatch& d) { d.push.resize(40'000); }).find("push constants") != std::string::npos);
  CHECK(first_refusal([](CustomDispatch& d) { d.push.clear(); }) ==
        "[scaled_square] expected the 4 bytes of push constants that scaled_square.f32 declares, got 0");
  CHECK(first_refusal([](CustomDispatch& d) {
          d.spirv = halfstep_kernels::odd_block();
          d.push.resize(56);
        }) == "[scaled_square] expected the 60 bytes of push constants that scaled_square.f32 declares, got 56");
  CHECK(first_refusal([](CustomDispatch& d) { d.push.resize(5); }) ==
        "[scaled_square] expected push constants of whole words for scaled_square, got 5 bytes");
  CHECK(first_refusal([](CustomDispatch& d) { d.local_size = 1 << 20; }).find("invocations") != std::string::npos);
  CHECK(refusal([](CustomKernels& kernels) {
          kernels.workspaces = {{DType::f32, {0}}};
        }) == "[scaled_square] expected workspaces of positive extents, got f32 {0}");
}

TEST_CASE("an application's own operator whose results change their number or shapes is refused") {
  const auto refusal_of = [](std::vector<std::vector<Shape>> answers) -> std::string {
    Graph graph;
    const Tensor x[] = {graph.root().parameter("x", {3, 5}, constant(1))};
    const Tensor y = apply_operator(std::make_shared<Moody>(std::move(answers)), x).back();
    try {
      Trainer::compile(testing::device(), graph, {.loss = mean(y), .precision = Precision::float32()});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string begin = "[moody] expected results of the shapes ";
  CHECK(refusal_of({{{3, 5}}, {{3, 4}}}).starts_with(begin + "{3, 5} as at first, got {3, 4}. Hint: "));
  CHECK(refusal_of({{{3}, {2}}, {{3}}}).starts_with(begin + "{3}, {2} as at first, got {3}. "));
  CHECK(refusal_of({{{3}}, {{3}, {2}}}).starts_with(begin + "{3} as at first, got {3}, {2}. "));
}

TEST_CASE("what of an application's own SPIR-V drivers would crash on is refused") {
  CHECK(set_refusal(0).empty());
  CHECK(
      set_refusal(1) ==
      "[scaled_square] expected binding 0 of set 1 of scaled_square.f32 to be a uniform buffer, got a storage buffer");
  CHECK(set_refusal(2) ==
        "[scaled_square] expected the bindings of scaled_square.f32 in set 0, got binding 0 of set 2");
  const auto begins = [](const vk::Instruction& i) { return i.opcode == vk::op_entry_point; };
  CHECK(word_refusal(begins, 3, 0x6e69656d) ==  // "mein"
        "[scaled_square] expected one entry point in scaled_square.f32, 'main' of a compute shader, got another");
  for (const auto& [capability, what] : {std::pair(vk::capability_int8, "8-bit integers"),
                                         {vk::capability_int16, "16-bit integers"},
                                         {vk::capability_int64_atomics, "64-bit atomics"}}) {
    CHECK(capability_refusal(capability)
              .starts_with(fmt::format(
                  "[scaled_square] expected a device that was opened with {} for scaled_square.f32, got ", what)));
  }
  const std::uint32_t derivative_control = 51;  // which Vulkan 1.1 requires
  CHECK(capability_refusal(derivative_control).empty());
  CHECK(constants_refusal({0}) ==
        "[scaled_square] expected shared arrays of at least 1 element in scaled_square.f32, got one of none");
  CHECK(constants_refusal({1, 1}) ==
        "[scaled_square] expected specialization constants of 32 bits in scaled_square.f32, got constant 2 of 16");
  CHECK(constants_refusal(std::vector<std::uint32_t>(100)) ==
        "[scaled_square] expected specialization constants below 100 for scaled_square.f32, got 100");
}
