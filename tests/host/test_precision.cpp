#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "models/layers.h"
#include "passes/precision.h"
#include "train/step_graph.h"

namespace halfstep {
namespace {

/// A convolution with its bias, a ReLU, a pooled sum and a dense layer.
struct Model {
  Graph graph;
  Tensor images = graph.input("images", {2, 8, 8, 4});
  Tensor labels = graph.input("labels", {2}, DType::u32);
  Tensor conv = models::same_conv(graph.root() / "conv1", images, 4, 3);
  Tensor active = relu(conv);
  Tensor pooled = sum(active, {1, 2});
  Tensor shifted = add(pooled, pooled);
  Tensor logits = models::dense(graph.root() / "fc", shifted, 3);
  Tensor loss = cross_entropy(logits, labels);

  /// The types of all of these under a policy, in that order.
  std::vector<DType> types(const Precision& precision) const {
    const passes::LoweredPrecision lowered = passes::apply_precision(graph.ir(), precision);
    std::vector<DType> found;
    for (const Tensor& tensor : {conv, active, pooled, shifted, logits, loss}) {
      found.push_back(lowered.ir.values[lowered.value[tensor.id()]].type.dtype);
    }
    return found;
  }
};

constexpr DType f32 = DType::f32;
constexpr DType f16 = DType::f16;
constexpr DType bf16 = DType::bf16;

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("each level stores each list of operators as its table says") {
  const Model model;
  using Types = std::vector<DType>;
  // convolution, ReLU, sum, add, dense layer, loss
  CHECK(model.types(Precision::level("O0")) == Types{f32, f32, f32, f32, f32, f32});
  CHECK(model.types(Precision::level("O1")) == Types{f16, f16, f32, f32, f16, f32});
  CHECK(model.types(Precision::level("O2")) == Types{f16, f16, f16, f16, f16, f32});
  CHECK(model.types(Precision::level("bfloat16")) == Types{bf16, bf16, bf16, bf16, bf16, f32});
  CHECK(model.types(Precision::level("O3")) == Types{f16, f16, f16, f16, f16, f32});
  CHECK(Precision::level("O0").name == "float32");
  CHECK(Precision::level("autocast").parameters == f32);
  CHECK(Precision::level("mixed").weights == f32);
  CHECK(Precision::level("mixed").parameters == f16);
  CHECK(Precision::level("float16").weights == f16);
  CHECK(Precision::level("bfloat16").weights == f32);
  CHECK(Precision::level("bfloat16_weights").weights == bf16);
  for (const std::string& name : Precision::names()) CHECK(Precision::level(name).name == name);
  CHECK(refusal([] { Precision::level("O4"); }).find("'O4'") != std::string::npos);
}

TEST_CASE("norms work in f32 but for the level that is f16 throughout") {
  CHECK(Precision::autocast().lists.norms == DType::f32);
  CHECK(Precision::mixed().lists.norms == DType::f32);
  CHECK(Precision::float16().lists.norms == DType::f16);
}

TEST_CASE("a layer is given another type by its scope, and an operator by its name") {
  const Model model;
  Precision precision = Precision::float32();
  precision.layer("conv*", f16);
  CHECK(model.types(precision)[0] == f16);
  CHECK(model.types(precision)[4] == f32);
  precision = Precision::mixed();
  precision.layer("fc", f32);
  CHECK(model.types(precision)[4] == f32);
  CHECK(model.types(precision)[3] == f16);
  precision = Precision::mixed();
  precision.operators["sum"] = DType::f32;
  CHECK(model.types(precision)[2] == f32);
  CHECK(model.types(precision)[3] == f16);
}

TEST_CASE("a layer's scope is that of its weights, also where what it works on is a parameter") {
  Graph graph;
  const Scope decoder = graph.root() / "decoder";
  const Tensor codes = decoder.parameter("codes", {3, 8}, constant(0));
  const Tensor y = linear(codes, (decoder / "q").parameter("weight", {8, 8}, constant(0)));
  const Tensor sum = add(codes, graph.input("x", {3, 8}));
  const auto type_of = [&](Tensor tensor, std::string pattern) {
    const passes::LoweredPrecision lowered =
        passes::apply_precision(graph.ir(), Precision::mixed().layer(std::move(pattern), f32));
    return lowered.ir.values[lowered.value[tensor.id()]].type.dtype;
  };
  CHECK(type_of(y, "decoder/?") == f32);
  CHECK(type_of(y, "decoder") == f16);
  CHECK(type_of(sum, "decoder") == f32);  // it has no other parameter
}

TEST_CASE("layers that are one operator have one type") {
  Graph graph;
  std::vector<DenseLayer> layers;
  for (const std::string name : {"first", "second", "last"}) {
    const Scope scope = graph.root() / name;
    layers.push_back({scope.parameter("weight", {8, 8}, constant(0)), scope.parameter("bias", {8}, constant(0))});
  }
  const Tensor y = fused_mlp(graph.input("x", {3, 8}), layers);
  const auto type_of = [&](const Precision& precision) {
    passes::check_names(graph.ir(), precision);
    const passes::LoweredPrecision lowered = passes::apply_precision(graph.ir(), precision);
    return lowered.ir.values[lowered.value[y.id()]].type.dtype;
  };
  CHECK(
      refusal([&] { type_of(Precision::float32().layer("first", f16)); }) ==
      "[fused_mlp] expected one type for 'first' and 'second', which are one operator, got f16 (layer 'first') and f32 "
      "(float32: products). Hint: name all its scopes, or use linear(), an operator of its own for each layer");
  CHECK_THROWS_AS(type_of(Precision::mixed().layer("last", f32)), Error);
  CHECK(type_of(Precision::mixed().layer("last", f16)) == f16);
  CHECK(type_of(Precision::mixed().layer("*st", f32).layer("second", f32)) == f32);
}

TEST_CASE("a layer in f32 reads its f32 master where there is one") {
  const Model model;
  const auto weight = [&](Precision precision) {
    precision.layer("fc", f32);
    const passes::LoweredPrecision lowered = passes::apply_precision(model.graph.ir(), precision);
    for (const graph::Value& value : lowered.ir.values) {
      if (value.name == "fc/weight") return value.type.dtype;
    }
    return DType::u32;
  };
  CHECK(weight(Precision::mixed()) == f32);
  CHECK(weight(Precision::float16()) == f16);
}

TEST_CASE("what reads a state works in f32, unless it is given another type") {
  Graph graph;
  const Tensor images = graph.input("images", {4, 3, 3, 5});
  const Tensor weight = graph.root().state("weight", {5, 2}, constant(0));
  const Tensor norm = models::batch_norm(graph.root() / "norm", images);
  const Tensor logits = linear(norm, weight);
  const Tensor seen = graph.root().state("seen", {2}, constant(0));
  const Tensor more = add(seen, sum(logits, {0, 1, 2}));
  update(seen, more);
  const auto types = [&](const Precision& precision) {
    const passes::LoweredPrecision lowered = passes::apply_precision(graph.ir(), precision);
    std::vector<DType> found;
    for (const Tensor& tensor : {norm, logits, more, seen}) {
      found.push_back(lowered.ir.values[lowered.value[tensor.id()]].type.dtype);
    }
    return found;
  };
  using Types = std::vector<DType>;
  CHECK(types(Precision::mixed()) == Types{f32, f32, f32, f32});
  CHECK(types(Precision::autocast()) == Types{f32, f32, f32, f32});
  CHECK(types(Precision::float16()) == Types{f16, f32, f32, f32});
  Precision precision = Precision::float16();
  precision.operators["add"] = f16;
  CHECK(types(precision) == Types{f16, f32, f16, f32});
  precision.operators["linear"] = f16;
  CHECK(types(precision) == Types{f16, f16, f16, f32});
  precision.operators["add"] = widest;
  CHECK(types(precision) == Types{f16, f16, f32, f32});
}

TEST_CASE("what leads from a state to its next value works in f32, up to a product") {
  Graph graph;
  const Tensor images = graph.input("images", {4, 5});
  const Tensor logits = linear(images, graph.root().parameter("weight", {5, 2}, normal(1)));
  const Tensor seen = graph.root().state("seen", {2}, constant(0));
  const Tensor now = sum(logits, {0});
  const Tensor much = scale(now, 0.1F);
  const Tensor next = reshape(add(scale(seen, 0.9F), much), {2});
  update(seen, next);
  const Tensor beside = mul(next, logits);  // reads what is f32, and leads to no state
  const Tensor hidden = graph.root().state("hidden", {4, 2}, constant(0));
  const Tensor through = relu(linear(hidden, graph.root().parameter("recurrent", {2, 2}, normal(1))));
  update(hidden, through);
  const passes::LoweredPrecision lowered = passes::apply_precision(graph.ir(), Precision::float16());
  const auto type = [&](const Tensor& tensor) { return lowered.ir.values[lowered.value[tensor.id()]].type.dtype; };
  CHECK(type(next) == f32);
  CHECK(type(much) == f16);
  CHECK(type(logits) == f16);
  CHECK(type(beside) == f16);
  CHECK(type(through) == f16);
}

TEST_CASE("a name that no layer and no operator has is refused") {
  const Model model;
  Precision precision = Precision::float32();
  precision.layer("conv7", f16);
  const auto refused = [&] { return refusal([&] { passes::check_names(model.graph.ir(), precision); }); };
  CHECK(refused() == "[precision] expected a layer 'conv7' in the graph, got none");
  precision = Precision::float32();
  precision.operators["convolve"] = DType::f16;
  CHECK(refused() == "[precision] expected an operator 'convolve' in the graph, got none");
}

TEST_CASE("a type for what takes each input as it is, is refused") {
  const Model model;
  Precision precision = Precision::mixed();
  precision.operators["cross_entropy"] = f32;
  const std::string hint = "Hint: losses, metrics, casts and encodings take each input as it is";
  CHECK(refusal([&] { passes::check_names(model.graph.ir(), precision); }) ==
        "[precision] expected an operator that can be given a type, got 'cross_entropy'. " + hint);
  Graph graph;
  const HashGridOptions options{.levels = 1, .features = 4, .base_resolution = 2};
  const Tensor table = (graph.root() / "grid").parameter("table", {hash_grid_size(2, options)}, constant(0));
  hash_grid(graph.input("positions", {4, 2}), table, options);
  CHECK(refusal([&] { passes::check_names(graph.ir(), Precision::mixed().layer("grid", f32)); }) ==
        "[precision] expected a layer that can be given a type, got 'grid'. " + hint);
}

TEST_CASE("two types by hand are an error that names operator, argument and types, unless the policy promotes") {
  Graph graph;
  const Tensor a = graph.input("a", {4, 5});
  const Tensor b = graph.input("b", {4, 5}, f16);
  const Tensor y = mul(a, b);
  for (const char* level : {"O0", "O2", "O3"}) {
    const std::string text = refusal([&] { passes::apply_precision(graph.ir(), Precision::level(level)); });
    CHECK(text ==
          "[mul] expected argument 2, 'b', in f32 as 'a' is, got f16. Hint: cast one of them, or let the policy "
          "promote");
  }
  const passes::LoweredPrecision lowered = passes::apply_precision(graph.ir(), Precision::autocast());
  CHECK(lowered.ir.values[lowered.value[y.id()]].type.dtype == f32);
}

TEST_CASE("operators that lose precision are named once each") {
  const Model model;
  Precision precision = Precision::float32();
  precision.layer("conv1", f16);
  const passes::LoweredPrecision lowered = passes::apply_precision(model.graph.ir(), precision);
  REQUIRE(lowered.reduced.size() == 1);
  CHECK(lowered.reduced[0] == "conv1 conv2d forward f32 -> f16");
  CHECK(passes::apply_precision(model.graph.ir(), Precision::float32()).reduced.empty());
}

TEST_CASE("hyperparameters that f16 would lose are named with what they would be") {
  TrainerOptions options{.optimizer = Adam{.rate = 0.01F}, .clip_norm = 1e6F, .precision = Precision::mixed()};
  options.groups = {{.pattern = "slow", .rate = 1e-7F}, {.pattern = "free", .weight_decay = 1e-9F}};
  options.weight_limit = 1e-9F;
  const std::vector<std::string> notes = train::hyperparameter_notes(options, {options.optimizer});
  const auto says = [&](std::string_view text) {
    return std::ranges::any_of(notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
  };
  CHECK(says("epsilon 1e-08 would be 0 in f16: used in f32, as 1e-08"));
  CHECK(says("rate / loss scale 65536"));
  CHECK_FALSE(says("rate 0.01"));
  CHECK(says("'slow' rate 1e-09"));
  CHECK(says("'free' weight_decay 1e-09"));
  CHECK(says("clip_norm 1e+06 would be inf in f16"));
  CHECK(says("weight_limit 1e-09"));
  options.precision = Precision::float32();
  CHECK(train::hyperparameter_notes(options, {options.optimizer}).empty());
}

TEST_CASE("choices that would change nothing are refused with a reason") {
  const auto refused = [](auto&& change, Precision precision, const Optimizer& optimizer = Sgd{}) {
    change(precision);
    return refusal([&] { train::check_precision(precision, {optimizer}); });
  };
  const Precision wide = Precision::float32();
  CHECK(refused([](Precision& p) { p.rounding.weights = Rounding::stochastic; }, wide).find("stochastic") !=
        std::string::npos);
  CHECK(refused([](Precision& p) { p.rounding.gradients = Rounding::stochastic; }, wide).find("stochastic") !=
        std::string::npos);
  CHECK(
      refused([](Precision& p) { p.rounding.optimizer = Rounding::stochastic; }, Precision::mixed()).find("moments") !=
      std::string::npos);
  CHECK(refused([](Precision& p) { p.overflow = Overflow::saturate; }, wide).find("saturation") != std::string::npos);
  CHECK(refused([](Precision& p) { p.partials.conv2d = f16; }, wide).find("partials") != std::string::npos);
  CHECK(refused([](Precision& p) { p.moments = f16; }, wide).find("moments") != std::string::npos);
  CHECK(refused([](Precision& p) { p.weights = f16; }, wide).find("parameters") != std::string::npos);
  const Precision brain = Precision::bfloat16();
  CHECK(refused([](Precision& p) { p.weights = f16; }, brain).find("f32 or bf16") != std::string::npos);
  CHECK(refused([](Precision& p) { p.moments = f16; }, brain).find("f32 or bf16") != std::string::npos);
  CHECK(refused([](Precision& p) { p.moments = bf16; }, brain).empty());
  CHECK(refused([](Precision& p) { p.partials.matmul = f16; }, brain).find("operators in f16") != std::string::npos);
  CHECK(refused([](Precision& p) { p.partials.matmul = bf16; }, brain).find("partials") != std::string::npos);
  CHECK(refused([](Precision& p) { p.gradient_scales = GradientScales::per_tensor; }, brain).find("of f16") !=
        std::string::npos);
  CHECK(refused([](Precision& p) { p.lists.norms = DType::u32; }, brain).find("got u32") != std::string::npos);
  CHECK(refused([](Precision& p) { p.loss_scale.in_rate = true; }, Precision::mixed()).find("rate") !=
        std::string::npos);
  const auto in_rate = [](Precision& p) {
    p.loss_scale = {.kind = LossScale::Kind::fixed, .initial = 8, .in_rate = true};
  };
  CHECK(refused(in_rate, Precision::mixed()).empty());
  CHECK(refused(in_rate, Precision::mixed(), Adam{}).find("Adam") != std::string::npos);
}

TEST_CASE("patterns: a star is any characters, a question mark one") {
  CHECK(matches("conv*", "conv1"));
  CHECK(matches("*grad*", "fc/weight.gradient"));
  CHECK(matches("*", ""));
  CHECK(matches("conv?", "conv2"));
  CHECK_FALSE(matches("conv?", "conv"));
  CHECK_FALSE(matches("conv", "conv1"));
  CHECK(matches("*a?b**", "aaacbbd"));
  CHECK_FALSE(matches("a*ab", "aab a"));
  CHECK(matches("gr?n", "gr\u00fcn"));
  CHECK_FALSE(matches("gr??n", "gr\u00fcn"));
  CHECK(matches("*?\u4e2d??", "\u6587\u4e2dx\u6587\u4e2d\U0001f600\u00fc"));
  CHECK(matches("a?c",
                "a\xff"
                "c"));
}

TEST_CASE("patterns: what many stars may stand for is not tried in every combination, of which there are 10^14") {
  const std::string name(64, 'a');
  CHECK(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*", name));
  CHECK_FALSE(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
}

}  // namespace halfstep
