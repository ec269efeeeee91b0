#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "models/gpt.h"
#include "plan/graph_values.h"
#include "plan/program.h"
#include "step/step_program.h"
#include "train/step_graph.h"

namespace halfstep {
namespace {

plan::Target target_of(bool cpu) {
  plan::Target target;
  target.cpu = cpu;
  target.float16.words = cpu;
  target.float16.storage = plan::Storage16::native;
  target.max_invocations = 256;
  target.shared_memory_bytes = 32768;
  target.max_storage_buffers = 16;
  if (cpu) target.subgroups = {.size = 8, .shuffle = true, .broadcast = true};
  return target;
}

/// A training program of a small GPT, and of two squared differences in one scope, in f16 rounded at random.
step::StepProgram program(const plan::Target& target) {
  Graph graph;
  const Tensor tokens = graph.input("tokens", {2, 8}, DType::u32);
  const Tensor labels = graph.input("labels", {16}, DType::u32);
  const Tensor logits =
      models::gpt(graph.root(), tokens, {.layers = 2, .heads = 2, .width = 8, .positions = 8, .vocabulary = 5});
  const Tensor rows = reshape(logits, {16, 5});
  const Tensor loss = add(cross_entropy(rows, labels), add(mse_loss(rows, relu(rows)), mse_loss(relu(rows), rows)));
  Precision precision = Precision::float16();
  precision.rounding.activations = Rounding::stochastic;
  precision.rounding.gradients = Rounding::stochastic;
  const TrainerOptions options{.loss = loss, .optimizer = Sgd{.rate = 0.1F}, .accumulate = 2, .precision = precision};
  const step::StepGraph step_graph = train::training_graph(graph, options);
  return step::training_program(target, step_graph, step::layout_of(step_graph), options, {.count = 2, .all = 2});
}

}  // namespace

TEST_CASE("every tensor that is rounded at random has noise of its own") {
  for (const bool cpu : {false, true}) {
    CAPTURE(cpu);
    const plan::Program program = halfstep::program(target_of(cpu)).plan.program;
    std::map<std::uint32_t, std::set<std::string>> tensors;
    std::size_t pairs = 0;
    for (const plan::Dispatch& dispatch : program.dispatches) {
      if (!dispatch.storing.stochastic || dispatch.phase == plan::Phase::update) continue;
      std::size_t results = 0;
      for (const plan::Operand& operand : dispatch.operands) {
        const plan::ProgramTensor& tensor = program.tensors[operand.tensor];
        if (operand.access == plan::Access::read || !is_narrow(tensor.type.dtype)) continue;
        REQUIRE(results < dispatch.storing.streams.size());
        const std::string name = std::to_string(operand.tensor) + " " + tensor.name;
        tensors[dispatch.storing.streams.at(results++)].insert(name);
      }
      pairs += results == 2 ? 1 : 0;
    }
    CHECK(tensors.size() > 100);
    CHECK((cpu || pairs > 0));  // kernels of two results
    for (const auto& [stream, names] : tensors) {
      CAPTURE(*names.begin());
      CAPTURE(*names.rbegin());
      CHECK(stream >= 0x80000000U);
      CHECK(names.size() == 1);
    }
  }
}

TEST_CASE("an application's kernels that write a tensor again round it with noise of their own, every time the same") {
  plan::ProgramBuilder builder(target_of(true));
  builder.stores().key_noise(builder.place_bytes("state", 64, {builder.buffer("state"), 0}));
  builder.stores().set(Rounding::stochastic, Overflow::infinity);
  const auto write = [&](bool own_kernels) {
    const plan::TensorId tensor = builder.tensor("sum", {DType::f16, {4}});
    for (int i = 0; i < 3; ++i) {
      plan::Dispatch dispatch;
      dispatch.shader = "adds.packed";
      dispatch.operands = {{tensor, plan::Access::read_write}};
      if (own_kernels) dispatch.spirv = std::make_shared<const std::vector<std::uint32_t>>();
      builder.dispatch(dispatch);
    }
  };
  for (const bool own_kernels : {true, true, false}) write(own_kernels);
  const std::vector<plan::Dispatch> dispatches = builder.finish().dispatches;
  const auto stream = [&](std::size_t i) { return dispatches.at(i).storing.streams[0]; };
  CHECK(std::set{stream(0), stream(1), stream(2)}.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(stream(3 + i) == stream(i));  // such as what is recomputed
    CHECK(stream(6 + i) == stream(0));
  }
}

TEST_CASE("noise of a name that ends in a digit is not that of a repetition") {
  std::set<std::uint32_t> streams;
  for (const char* name : {"dropout 1", "dropout 10", "dropout 11", "dropout 111"}) {
    for (std::uint32_t run = 0; run < 20000; ++run) streams.insert(plan::noise_stream(name, run));
  }
  CHECK(streams.size() == 80000);
}

}  // namespace halfstep
