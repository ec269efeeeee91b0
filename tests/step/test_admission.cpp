// What is noted of a way to compute something, and for what; and what says nothing about it and is never noted.
#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir.h"
#include "harness/device.h"
#include "harness/faults.h"
#include "host/temporary_folder.h"
#include "ops/gemm/gemm_choice.h"
#include "step/execution.h"
#include "step/step_program.h"
#include "tune/note_key.h"
#include "tune/tuner.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"

using namespace halfstep;

namespace {

const std::string products = "gemm row_row f32 f32";

plan::Choice product_choice(const std::string& kind, std::vector<plan::Candidate> candidates) {
  plan::Choice choice;
  choice.kind = kind;
  choice.key = kind + " of a test";
  choice.candidates = std::move(candidates);
  choice.problem = ops::gemm_checks(kind).front();
  return choice;
}

/// Of a device, in the notes of `folder`.
std::optional<std::string> noted(const vk::Context& context, const TemporaryFolder& folder, const std::string& about) {
  const vk::Notes notes(context.capabilities(), folder.path());
  return notes.find(tune::note_key(about, context.capabilities(), context.target()));
}

/// The code of the Error that settling the choice ends with; nothing if it succeeds.
std::optional<ErrorCode> code_of(tune::Tuner& tuner, const plan::Choice& choice, const vk::Context& context) {
  plan::Target target = context.target();
  try {
    tuner.settle(std::vector{choice}, target);
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

/// Whether shaders are changed already, to end their loops.
bool has_patched_shaders() {
  return vk::settings({}).limits.contains("loop_rounds");
}

/// While it lives, what a driver packs as halves comes out as something else.
struct WrongPacking {
  WrongPacking() {
    vk::patch_shaders([](std::string_view, const std::vector<std::uint32_t>& words) {
      constexpr std::uint32_t pack_unorm_2x16 = 57, pack_half_2x16 = 58;
      std::vector<std::uint32_t> changed = words;
      std::uint32_t glsl = 0;
      vk::for_each_instruction(words, [&](const vk::Instruction& i) {
        if (i.opcode == vk::op_ext_inst_import && i.operand(2) == vk::glsl_begins) glsl = i.operand(1);
        if (i.opcode == vk::op_ext_inst && i.operand(3) == glsl && i.operand(4) == pack_half_2x16)
          changed[static_cast<std::size_t>(i.words.data() - words.data()) + 4] = pack_unorm_2x16;
      });
      return changed;
    });
  }
  ~WrongPacking() { vk::patch_shaders({}); }
  WrongPacking(const WrongPacking&) = delete;
  WrongPacking& operator=(const WrongPacking&) = delete;
};

Device opened(const TemporaryFolder& folder, std::optional<std::string> limits = {}) {
  return Device::open(
      testing::device().info().name,
      {.tuning = Tuning::off, .limits = std::move(limits), .cache_folder = folder.path(), .may_fork = false});
}

}  // namespace

TEST_CASE("a lone candidate is checked where the rule is not known to be right, and not timed") {
  vk::Context& context = testing::context();
  const TemporaryFolder folder;
  plan::Target target = context.target();
  plan::Choice choice = product_choice(products, {{"tile32"}});
  tune::Tuner tuner(context, *testing::pipelines(), Tuning::on, folder.path());
  CHECK_FALSE(tuner.settle(std::vector{choice}, target));
  REQUIRE(tuner.findings().size() == 1);
  CHECK(tuner.findings().front().reason == "by rule");
  CHECK(tuner.findings().front().ways.front().microseconds == 0);
  CHECK(noted(context, folder, products + " by tile32") == "right");
  CHECK_FALSE(noted(context, folder, choice.key).has_value());
  tune::Tuner other(context, *testing::pipelines(), Tuning::on, folder.path());
  choice.candidates = {{"fastest"}};
  CHECK(code_of(other, choice, context) == ErrorCode::bad_argument);
  // A software driver's rule is: nothing is compiled for it.
  choice.rule_is_known = true;
  choice.key += " whose rule is known";
  CHECK_FALSE(code_of(other, choice, context).has_value());
  CHECK(other.findings().empty());
}

TEST_CASE("a verdict is of the rounding to f16 that a program has") {
  if (has_patched_shaders()) return;
  vk::Context& context = testing::context();
  const std::string kind = "gemm row_row f16 f32";
  const TemporaryFolder folder;
  const WrongPacking wrong;
  vk::Pipelines pipelines(context);
  for (const bool by_driver : {false, true}) {
    CAPTURE(by_driver);
    plan::Target target = context.target();
    target.float16.rounded_by_driver = by_driver;
    {
      tune::Tuner tuner(context, pipelines, Tuning::on, folder.path());
      const std::vector choices{product_choice(kind, {{"tile32"}})};
      if (by_driver) CHECK_THROWS_WITH_AS(tuner.settle(choices, target), doctest::Contains("element "), Error);
      if (!by_driver) CHECK_FALSE(tuner.settle(choices, target));
    }
    const vk::Notes notes(context.capabilities(), folder.path());
    const auto verdict = notes.find(tune::note_key(kind + " by tile32", context.capabilities(), target));
    REQUIRE(verdict.has_value());
    CHECK((*verdict == "right") == !by_driver);
    if (by_driver == context.target().float16.rounded_by_driver) continue;
    const std::string answer = tune::check_in_child(tune::request_of(context, target, kind, "tile32"));
    CHECK((answer == "right") == !by_driver);
    CHECK(answer.front() != '?');
  }
}

TEST_CASE("a child has the limits and the cache folder of the device that asks it") {
  if (has_patched_shaders()) return;
  const TemporaryFolder folder;
  const Device device = opened(folder, "invocations=128");
  vk::Context& context = vk::context_of(device);
  const auto answer = [&](const char* kernel) {
    return tune::check_in_child(tune::request_of(context, context.target(), products, kernel));
  };
  CHECK(answer("tile32") == "right");
  CHECK(answer("tile128").find("expected HALFSTEP_GEMM") != std::string::npos);  // it has 256 invocations
  const std::filesystem::directory_iterator files(folder.path());
  CHECK(std::any_of(begin(files), end(files), [](const std::filesystem::directory_entry& file) {
    return file.path().filename().string().starts_with("pipelines-");
  }));
}

TEST_CASE("a child that cannot judge says so") {
  testing::FaultyVulkan vulkan;
  const TemporaryFolder folder;
  const std::string request = tune::request_of(testing::context(), testing::context().target(), products, "tile32");
  for (const testing::Fault& fault : {testing::Fault{"vkCreateDevice", 1, VK_ERROR_INITIALIZATION_FAILED},
                                      {"vkCreateBuffer", 1, VK_ERROR_OUT_OF_DEVICE_MEMORY},
                                      {"vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST}}) {
    CAPTURE(fault.function);
    vulkan.plan(fault);
    CHECK(tune::check_in_child(request).starts_with("?"));
    CHECK(vulkan.happened());
  }
}

TEST_CASE("what kept a risky candidate from being judged is not noted") {
  vk::Context& context = testing::context();
  const auto has_no_memory = [](std::string_view) -> std::string { return "?no memory"; };
  const auto throws = [](std::string_view) -> std::string { throw std::runtime_error("no"); };
  const auto is_ended = [](std::string_view) -> std::string {
    std::raise(SIGKILL);
    return "alive";
  };
  for (const process::Child::Work work : {process::Child::Work{has_no_memory}, {throws}, {is_ended}}) {
    const TemporaryFolder folder;
    process::Child child;
    vk::Notes notes(context.capabilities(), folder.path());
    tune::Admission admission(context, *testing::pipelines(), notes, false, &child, work);
    const tune::Verdict& verdict = admission.verdict(context.target(), products, {"tile32", true});
    CHECK_FALSE(verdict.objection.empty());
    CHECK(verdict.objection.front() != '?');
    CHECK(verdict.hindrance == ErrorCode::system);
    notes.save();
    CHECK_FALSE(noted(context, folder, products + " by tile32").has_value());
  }
}

TEST_CASE("memory that is short while a kernel is checked or timed says nothing about it") {
  testing::FaultyVulkan vulkan;
  const TemporaryFolder folder;
  const Device device = opened(folder);
  vk::Context& context = vk::context_of(device);
  vk::Pipelines pipelines(context);
  const plan::Choice choice = product_choice(products, {{"tile32"}});
  vulkan.plan(testing::Fault{"vkCreateBuffer", 1, VK_ERROR_OUT_OF_DEVICE_MEMORY});
  {
    tune::Tuner tuner(context, pipelines, Tuning::on, folder.path());
    CHECK(code_of(tuner, choice, context) == ErrorCode::out_of_memory);
  }
  CHECK(vulkan.happened());
  CHECK_FALSE(noted(context, folder, products + " by tile32").has_value());
  // A check makes as many buffers each time; the next one is of the time.
  vulkan.plan(std::nullopt);
  CHECK(tune::check(context, pipelines, context.target(), products, "tile32").empty());
  const std::size_t of_check = vulkan.calls()["vkCreateBuffer"];
  vulkan.plan(testing::Fault{"vkCreateBuffer", of_check + 1, VK_ERROR_OUT_OF_DEVICE_MEMORY});
  {
    tune::Tuner tuner(context, pipelines, Tuning::force, folder.path());
    CHECK_FALSE(code_of(tuner, choice, context).has_value());
    CHECK(tuner.findings().front().reason == "by rule, with no memory to measure");
  }
  CHECK(vulkan.happened());
  CHECK(noted(context, folder, products + " by tile32") == "right");
  CHECK_FALSE(noted(context, folder, choice.key).has_value());
}

TEST_CASE("a device that is lost while kernels are checked or timed leaves no verdict, and is told as such") {
  testing::FaultyVulkan vulkan;
  const TemporaryFolder folder;
  const plan::Choice choice = product_choice(products, {{"tile32"}, {"tile64"}});
  for (const bool checked_before : {false, true}) {
    CAPTURE(checked_before);
    const Device device = opened(folder);
    vk::Context& context = vk::context_of(device);
    vk::Pipelines pipelines(context);
    if (checked_before) {
      vulkan.plan(std::nullopt);
      tune::Tuner tuner(context, pipelines, Tuning::off, folder.path());
      CHECK_FALSE(code_of(tuner, choice, context).has_value());
    }
    vulkan.plan(testing::Fault{"vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST});
    {
      tune::Tuner tuner(context, pipelines, Tuning::on, folder.path());
      CHECK(code_of(tuner, choice, context) == ErrorCode::device_lost);
    }
    CHECK(vulkan.happened());
    const auto verdict = noted(context, folder, products + " by tile32");
    CHECK(verdict == (checked_before ? std::optional<std::string>("right") : std::nullopt));
    CHECK_FALSE(noted(context, folder, choice.key).has_value());
  }
}

TEST_CASE("to check and measure anew replaces what is noted") {
  vk::Context& context = testing::context();
  const TemporaryFolder folder;
  const std::string key = tune::note_key(products + " by tile32", context.capabilities(), context.target());
  vk::Notes notes(context.capabilities(), folder.path());
  notes.add(key, "it was wrong once");
  notes.save();
  const plan::Choice choice = product_choice(products, {{"tile32"}});
  {
    tune::Tuner tuner(context, *testing::pipelines(), Tuning::on, folder.path());
    CHECK(code_of(tuner, choice, context) == ErrorCode::bad_argument);
  }
  {
    tune::Tuner tuner(context, *testing::pipelines(), Tuning::force, folder.path());
    CHECK_FALSE(code_of(tuner, choice, context).has_value());
  }
  CHECK(noted(context, folder, products + " by tile32") == "right");
}

TEST_CASE("choices that a choice leaves are settled too, before it is timed where it may be chosen") {
  vk::Context& context = testing::context();
  if (context.target().max_rounds < 1000) return;  // it is computed layer by layer there
  Graph graph;
  const std::vector<DenseLayer> layers{{graph.input("w", {20, 16}), {}}, {graph.input("v", {16, 12}), {}}};
  const Tensor y = fused_mlp(graph.input("x", {72, 20}), layers);
  const auto lower = [&](const plan::Target& target) {
    step::ExecutionOptions options;
    options.target = target;
    step::StepProgram lowered;
    lowered.plan = step::Execution(context, graph::ir_of(y), {y.id()}, options).plan();
    return lowered;
  };
  const auto is_product = [](const std::string& key) { return key.starts_with("gemm"); };
  const auto is_network = [](const std::string& key) { return key.starts_with("mlp"); };

  plan::Target gpu = context.target();
  gpu.cpu = false;
  const std::string network = lower(gpu).plan.program.choices.front().key;
  REQUIRE(is_network(network));
  const TemporaryFolder folder;
  vk::Notes notes(context.capabilities(), folder.path());
  notes.add(tune::note_key(network, context.capabilities(), context.target()), "layers");
  notes.save();
  tune::Tuner tuner(context, *testing::pipelines(), Tuning::on, folder.path());
  const step::StepProgram program = tuner.settled(gpu, lower);
  CHECK(gpu.choices.at(network) == "layers");
  std::size_t products = 0;
  for (const plan::Choice& choice : program.plan.program.choices) {
    if (!is_product(choice.key)) continue;
    ++products;
    CHECK(std::ranges::count(tuner.findings(), choice.key, &tune::Finding::key) == 1);
  }
  CHECK(products == 2);

  plan::Target target = context.target();
  target.mlp_kernel = "layers";
  tune::Tuner timing(context, *testing::pipelines(), Tuning::force, {});
  static_cast<void>(timing.settled(target, lower));
  const auto& findings = timing.findings();
  const auto first_product = std::ranges::find_if(findings, is_product, &tune::Finding::key);
  const auto timed_network = std::ranges::find_if(findings, is_network, &tune::Finding::key);
  REQUIRE(timed_network != findings.end());
  CHECK(first_product < timed_network);
}
