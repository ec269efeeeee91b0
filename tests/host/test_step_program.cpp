#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/fashion_cnn.h"
#include "models/lenet5.h"
#include "models/mlp.h"
#include "models/resnet_cifar.h"
#include "state/gradient_scales.h"
#include "step/step_program.h"
#include "train/feed.h"
#include "train/step_graph.h"
#include "train/training_data.h"

namespace halfstep {
namespace {

/// A GPU, as far as planning is concerned.
plan::Target gpu() {
  plan::Target target;
  target.cpu = false;
  target.float16.storage = plan::Storage16::native;
  target.max_invocations = 256;
  target.shared_memory_bytes = 32768;
  target.max_storage_buffers = 16;
  target.wanted_groups = 64;
  return target;
}

/// A software driver on two cores.
plan::Target software() {
  plan::Target target;
  target.float16.words = true;
  target.subgroups = {.size = 8, .shuffle = true, .broadcast = true};
  target.max_invocations = 1024;
  target.max_storage_buffers = 16;
  return target;
}

using Model = std::function<Tensor(const Scope&, Tensor)>;

step::StepProgram program(const Model& model, std::int64_t batch, const Precision& precision,
                          std::uint32_t accumulate = 1, const plan::Target& target = gpu(),
                          const step::Watch& watch = {}) {
  Graph graph;
  const Tensor images = graph.input("images", {batch, 28, 28, 1});
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const TrainerOptions options{.loss = cross_entropy(model(graph.root(), images), labels),
                               .optimizer = Adam{},
                               .accumulate = accumulate,
                               .precision = precision,
                               .feed = Feed{.samples = images, .labels = labels}};
  const step::StepGraph step_graph = train::training_graph(graph, options);
  const state::StoreLayout layout = step::layout_of(step_graph);
  return step::training_program(target, step_graph, layout, options, {.count = accumulate, .all = accumulate}, watch);
}

Tensor fashion_cnn(const Scope& scope, Tensor images) {
  return models::fashion_cnn(scope, images);
}
Tensor lenet5(const Scope& scope, Tensor images) {
  return models::lenet5(scope, images);
}
Tensor resnet8(const Scope& scope, Tensor images) {
  return models::resnet_cifar(scope, images, 8);
}
/// Attention between the rows of an image.
Tensor attentive(const Scope& scope, Tensor images) {
  const Tensor rows = mul(reshape(images, {images.shape()[0], 1, 28, 28}), scope.parameter("scale", {28}, constant(1)));
  const Tensor y = attention(rows, rows, rows);
  return linear(flatten(y), scope.parameter("weight", {28 * 28, 10}, normal(0.1F)));
}

/// The tensors of the arena that are read, by a dispatch or the host, where nothing has written them.
std::vector<std::string> read_unwritten(const step::StepProgram& step) {
  const plan::Program& program = step.plan.program;
  std::vector<bool> written;
  for (const plan::ProgramTensor& tensor : program.tensors)
    written.push_back(tensor.region.buffer != plan::arena_buffer);
  std::vector<std::string> found;
  const auto read = [&](plan::TensorId tensor) {
    if (!written[tensor]) found.push_back(program.tensors[tensor].name);
  };
  for (const plan::Dispatch& dispatch : program.dispatches) {
    // What a kernel writes may also be bound in place of an operand that it does not use.
    for (const plan::Operand& operand : dispatch.operands) {
      if (operand.access == plan::Access::write) written[operand.tensor] = true;
    }
    for (const plan::Operand& operand : dispatch.operands) read(operand.tensor);
  }
  for (const step::Watched& watched : step.watched) {
    read(watched.tensor.memory);
    for (const step::Recorded& input : watched.inputs) read(input.memory);
  }
  return found;
}

}  // namespace

TEST_CASE("mixed precision takes at most 0.6 of float32's arena") {
  const auto bytes = [](const Precision& precision) {
    return static_cast<double>(program(fashion_cnn, 256, precision).plan.arena.bytes);
  };
  CHECK(bytes(Precision::mixed()) <= 0.6 * bytes(Precision::float32()));
  CHECK(bytes(Precision::float16()) <= 0.6 * bytes(Precision::float32()));
}

TEST_CASE("the arena reuses memory, and the plan names what lies where") {
  const step::StepProgram step = program(lenet5, 64, Precision::mixed());
  CHECK(step.plan.arena.bytes < step.plan.arena.bytes_unshared * 3 / 4);
  CHECK(step.plan.text().find("conv1/weight.gradient f16 {5, 5, 1, 6} @gradients+0") != std::string::npos);
}

TEST_CASE("the number of check, update and rescale dispatches does not grow with the model") {
  const auto stages = [](std::size_t layers, const Precision& precision) {
    const std::vector<std::int64_t> hidden(layers, 32);
    const step::StepProgram step =
        program([&](const Scope& scope, Tensor images) { return models::mlp(scope, images, hidden); }, 16, precision);
    std::size_t count = 0;
    for (const plan::Dispatch& dispatch : step.plan.program.dispatches) {
      count += dispatch.label == "check" || dispatch.label == "choose scales" || dispatch.label == "update" ||
               dispatch.label == "rescale";
    }
    return count;
  };
  CHECK(stages(1, Precision::mixed()) == 3);
  CHECK(stages(30, Precision::mixed()) == 3);
  Precision scaled = Precision::mixed();
  scaled.gradient_scales = GradientScales::per_tensor;
  CHECK(stages(1, scaled) == 4);
  CHECK(stages(30, scaled) == 4);
}

TEST_CASE("only what is stored as a parameter's gradient is scaled, each by its own") {
  Precision precision = Precision::mixed();
  precision.gradient_scales = GradientScales::per_tensor;
  const plan::Program scaled = program(lenet5, 64, precision).plan.program;
  std::set<std::uint32_t> places;
  for (const plan::Dispatch& dispatch : scaled.dispatches) {
    const bool gradient = std::ranges::any_of(dispatch.operands, [&](const plan::Operand& operand) {
      return operand.access != plan::Access::read && scaled.tensors[operand.tensor].name.ends_with(".gradient");
    });
    CHECK(dispatch.storing.scaled == gradient);
    for (const std::uint32_t place : dispatch.storing.scales) {
      if (place != 0) CHECK(places.insert(place).second);
    }
  }
  CHECK(places == std::set<std::uint32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  for (const plan::Dispatch& dispatch : program(lenet5, 64, Precision::mixed()).plan.program.dispatches) {
    CHECK_FALSE(dispatch.storing.scaled);
  }
}

TEST_CASE("more tensors than the table of scales has room for are refused") {
  const auto check = [](std::size_t count) {
    Graph graph;
    for (std::size_t i = 0; i < count; ++i) graph.root().parameter(std::to_string(i), {1}, constant(0));
    const std::vector<graph::ValueId> parameters = graph.ir().of(graph::Origin::parameter);
    const state::ParameterLayout layout(graph.ir(), parameters, std::vector<state::Training>(count));
    state::gradient_scales::check_count(layout);
  };
  check(4095);
  CHECK_THROWS_WITH_AS(check(4096), doctest::Contains("at most 4095 tensors to train"), Error);
}

TEST_CASE("what fusion leaves of the dispatches of a step") {
  const auto check = [](const Model& model, std::size_t before, std::size_t after) {
    plan::Target target = software();
    const plan::Program fused = program(model, 64, Precision::mixed(), 1, target).plan.program;
    CHECK(fused.dispatches.size() == after);
    CHECK(fused.dispatches_unfused == before);
    target.fusion = false;
    const plan::Program unfused = program(model, 64, Precision::mixed(), 1, target).plan.program;
    CHECK(unfused.dispatches.size() == before);
    CHECK(unfused.dispatches_unfused == before);
  };
  check(fashion_cnn, 37, 25);
  check(lenet5, 41, 26);
  check(resnet8, 147, 82);
}

TEST_CASE("micro-batches take the memory of one, and nothing but their own dispatches") {
  for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
    const step::StepProgram one = program(lenet5, 64, precision);
    const step::StepProgram two = program(lenet5, 64, precision, 2);
    const step::StepProgram five = program(lenet5, 64, precision, 5);
    CHECK(two.plan.arena.bytes == one.plan.arena.bytes);
    CHECK(five.plan.arena.bytes == one.plan.arena.bytes);
    const auto dispatches = [](const step::StepProgram& step) { return step.plan.program.dispatches.size(); };
    const auto tail =
        static_cast<std::size_t>(std::ranges::count_if(one.plan.program.dispatches, [](const plan::Dispatch& dispatch) {
          return dispatch.label == "check" || dispatch.label == "update" || dispatch.label == "rescale";
        }));
    const std::size_t each = dispatches(one) - tail + 2;  // and those that count rows and add the gradients
    CHECK(dispatches(two) == 2 * each + tail);
    CHECK(dispatches(five) == 5 * each + tail);
  }
}

TEST_CASE("nothing is read of the arena that was not written before, whatever is watched and kept") {
  for (const Model model : {fashion_cnn, lenet5, resnet8, attentive}) {
    for (const plan::Target& target : {gpu(), software()}) {
      for (const step::Watch& watch : {step::Watch{}, step::Watch{.statistics = "*", .keep = "*"}}) {
        const step::StepProgram step = program(model, 16, Precision::mixed(), 2, target, watch);
        CHECK(fmt::to_string(fmt::join(read_unwritten(step), ", ")) == "");
        CHECK(step.watched.empty() == watch.keep.empty());
      }
    }
  }
}

TEST_CASE("a program refuses weights in a type that no store has, and results that no operator computes") {
  Graph graph;
  const Tensor w = graph.root().parameter("w", {4}, constant(1));
  step::StepGraph prediction;
  prediction.ir = graph.ir();
  prediction.outputs = {scale(prediction.ir.tensor(w.id()), 2).id()};
  prediction.parameters = {w.id()};
  prediction.training = {{.frozen = true}};
  const auto lowered = [&](const Precision& precision) {
    return step::evaluation_program(gpu(), prediction, step::layout_of(prediction), precision);
  };
  CHECK(lowered(Precision::float32()).plan.program.dispatches.size() == 1);
  CHECK(lowered(Precision::mixed()).plan.program.dispatches.size() == 1);
  prediction.ir.values[w.id()].type.dtype = DType::f16;
  CHECK_THROWS_WITH_AS(lowered(Precision::float32()),
                       "[program] expected 'w' in f32 or Precision::parameters, as stores have weights, got f16",
                       Error);
  prediction.ir.values[w.id()].type.dtype = DType::f32;
  prediction.ir.nodes.clear();
  CHECK_THROWS_WITH_AS(lowered(Precision::float32()), doctest::Contains("an operator that computes 'scale:0'"), Error);
}

namespace {

/// What each dispatch moves before the backward pass, with so many samples on the device and entries of a table.
std::map<std::string, std::uint64_t> bytes_moved(std::size_t samples, std::int64_t entries) {
  Graph graph;
  const Tensor images = graph.input("images", {4, 6, 8, 3});
  const Tensor photos = graph.input("photos", {4, 6, 8, 3});
  const Tensor features = graph.input("features", {4, 8});
  const Tensor ids = graph.input("ids", {4, 2}, DType::u32);
  const Scope scope = graph.root();
  const Tensor rows = embedding(scope.parameter("table", {entries, 8}, constant(1)), ids);
  const Tensor window = slice(scope.parameter("wide", {entries, 8}, constant(1)), {2, 0}, {6, 8});
  const auto field = [&](const char* name, const Shape& shape, auto element) {
    return Field::own(name, shape, std::vector(samples * static_cast<std::size_t>(elements(shape)), element));
  };
  const Dataset set =
      Dataset::of("set", {field("images", {6, 8, 3}, std::uint8_t{1}), field("photos", {12, 9, 3}, std::uint8_t{1}),
                          field("features", {8}, 1.0F), field("ids", {2}, std::uint32_t{1})});
  Tensor loss = add(mean(rows), mean(window));
  for (const Tensor& each : {images, photos, features}) loss = add(loss, mean(each));
  const TrainerOptions options{
      .loss = loss,
      .precision = Precision::float32(),
      .feed = Feed{.inputs = {{.input = images}, {.input = photos}, {.input = features}, {.input = ids}}},
      .training_set = &set};
  step::StepGraph step_graph = train::training_graph(graph, options);
  train::place_resident(*step_graph.samples, train::fed_fields("feed", set, step_graph));
  plan::Target target = gpu();
  target.fusion = false;
  const plan::Program program =
      step::training_program(target, step_graph, step::layout_of(step_graph), options, {}).plan.program;
  std::map<std::string, std::uint64_t> moved;
  for (const plan::Dispatch& dispatch : program.dispatches) {
    const bool before = dispatch.phase == plan::Phase::feed || dispatch.phase == plan::Phase::forward;
    if (before) moved[dispatch.shader + " " + dispatch.label] += plan::bytes_touched(program, dispatch);
  }
  return moved;
}

}  // namespace

TEST_CASE("what a step moves is what it looks up of the set and of tables, however large these are") {
  const std::map<std::string, std::uint64_t> few = bytes_moved(16, 40);
  CHECK(bytes_moved(1024, 40) == few);
  CHECK(bytes_moved(16, 4000) == few);
  const std::uint64_t row = 4 * sizeof(std::uint32_t);  // with its padding
  CHECK(few.at("feed_integers.u32 feed ids") == 4 * sizeof(std::uint32_t) + 8 * sizeof(std::uint32_t) + 4 * row);
}

TEST_CASE("parameters start on 256 bytes in every type, in the order of the model, and nowhere twice") {
  Graph graph;
  const Tensor images = graph.input("images", {2, 28, 28, 1});
  models::lenet5(graph.root(), images);
  const std::vector<graph::ValueId> parameters = graph.ir().of(graph::Origin::parameter);
  const state::ParameterLayout layout(graph.ir(), parameters, std::vector<state::Training>(parameters.size()));
  CHECK(layout.count() == graph.parameter_count());
  std::uint64_t end = 0;
  for (const state::ParameterEntry& entry : layout.entries()) {
    CHECK(entry.first_element >= end);
    CHECK(entry.first_element * 2 % 256 == 0);
    end = entry.first_element + plan::byte_size(entry.type) / 4;
  }
  CHECK(layout.padded_elements() >= end);
}

}  // namespace halfstep
