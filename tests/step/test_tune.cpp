// Choices that programs leave open: no incorrect candidate is admitted, and a choice that was made is kept.
#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir.h"
#include "harness/device.h"
#include "host/temporary_folder.h"
#include "host/variable.h"
#include "ops/attention/attention_kernels.h"
#include "ops/choices.h"
#include "ops/elementwise/rounding_choice.h"
#include "ops/gemm/gemm_choice.h"
#include "ops/gemm/gemm_kernels.h"
#include "ops/gemm/winograd.h"
#include "step/execution.h"
#include "tune/note_key.h"
#include "tune/trial_run.h"
#include "tune/tuner.h"
#include "vk/shader/half_conversions.h"
#include "vk/shader/shaders.h"

using namespace halfstep;

namespace {

/// A choice between two tiles, whose rule prefers the first.
plan::Choice choice_of(std::vector<plan::Candidate> candidates) {
  plan::Choice choice;
  choice.kind = "gemm row_row f32 f32";
  choice.key = choice.kind + " of a test";
  choice.candidates = std::move(candidates);
  choice.problem = ops::gemm_checks(choice.kind).front();
  return choice;
}

struct Settled {
  tune::Finding finding;
  bool changed = false;
  plan::Target target;
};

Settled settle(const plan::Choice& choice, Tuning tuning, const std::filesystem::path& cache_folder = {}) {
  Settled settled;
  settled.target = testing::context().target();
  tune::Tuner tuner(testing::context(), *testing::pipelines(), tuning, cache_folder);
  settled.changed = tuner.settle(std::vector{choice}, settled.target);
  if (!tuner.findings().empty()) settled.finding = tuner.findings().front();
  return settled;
}

}  // namespace

TEST_CASE("every kernel is admitted on a driver that computes rightly") {
  for (const char* operands :
       {"row_row", "row_col", "col_row", "col_col", "patches_row", "patches_col", "pixels_row"}) {
    for (const char* types : {"f32 f32", "f16 f32", "bf16 f32"}) {
      const std::string kind = std::string("gemm ") + operands + " " + types;
      INFO(kind);
      CHECK(
          tune::check(testing::context(), *testing::pipelines(), testing::context().target(), kind, "tile32").empty());
    }
  }
  CHECK(tune::check(testing::context(), *testing::pipelines(), testing::context().target(), "gemm row_row f16 f16",
                    "tile64")
            .empty());
  // With matrix units, whose sums are of the type that the kind says.
  for (const plan::MatrixShape& shape : testing::context().target().matrix_shapes) {
    const DType dtype = shape.type == plan::MatrixType::bfloat16 ? DType::bf16 : DType::f16;
    const bool float8 = shape.type == plan::MatrixType::float8;
    const std::string kind =
        fmt::format("gemm row_row {} {}", float8 ? "float8" : name(dtype), shape.float16_sums ? "f16" : "f32");
    plan::Target target = testing::context().target();
    target.gemm_kernels = "cooperative32";
    const ops::Problem problem{.dtype = dtype, .float16_partials = shape.float16_sums, .float8 = float8};
    for (const ops::GemmKernel& kernel : ops::gemm_kernels(target, problem)) {
      INFO(kind << " by " << kernel.name);
      CHECK(tune::check(testing::context(), *testing::pipelines(), testing::context().target(), kind, kernel.name)
                .empty());
    }
  }
  CHECK_THROWS_AS(ops::checks("gemm of nothing"), Error);
  CHECK_THROWS_AS(ops::checks("attention of nothing"), Error);
  CHECK_THROWS_AS(ops::checks("mlp of nothing"), Error);
}

TEST_CASE("a candidate that computes none of its checks is refused") {
  vk::Context& context = testing::context();
  if (!context.target().winograd) return;
  const std::string wrong = tune::check(context, *testing::pipelines(), context.target(), "gemm row_row f32 f32",
                                        ops::winograd_kernel().name);
  CHECK(wrong == "it computes none of its checks");
}

TEST_CASE("a kernel that takes subnormal numbers of f16 for 0 is refused") {
  for (const char* kind : {"gemm row_row f16 f32", "gemm col_row f16 f16", "gemm patches_col f16 f32"}) {
    INFO(kind);
    std::size_t lost = 0;  // checks that such a kernel would fail
    for (const plan::Trial& trial : ops::gemm_checks(kind)) {
      const auto is_subnormal = [](float v) { return v != 0 && std::abs(v) < 0x1p-14F; };
      const bool flushed = std::ranges::all_of(trial.values[0], [&](float v) { return v == 0 || is_subnormal(v); }) ||
                           std::ranges::all_of(trial.values[1], [&](float v) { return v == 0 || is_subnormal(v); });
      if (!flushed) continue;
      CHECK(trial.allowed_difference == 0);
      if (std::ranges::any_of(trial.expected, [](float v) { return v != 0; })) ++lost;
    }
    CHECK(lost == 2);
  }
  // Weights times values, gradients of the result times weights, and gradients between layers.
  for (const auto& [kind, checks] :
       {std::pair{"attention f16", 6}, {"attention f32", 4}, {"mlp f16 32", 9}, {"mlp f32 32", 8}}) {
    const std::vector<plan::Trial> trials = ops::checks(kind);
    REQUIRE(trials.size() == static_cast<std::size_t>(checks));
    const float largest = std::ranges::max(trials.back().expected, {}, [](float v) { return std::abs(v); });
    if (std::string_view(kind).find("f16") == std::string_view::npos) continue;
    INFO(kind);
    CHECK(std::abs(largest) < 0x1p-14F);
    CHECK(std::abs(largest) > 8 * trials.back().allowed_difference);
  }
}

TEST_CASE("a kernel of networks is admitted on a driver that computes rightly, and refused where its results differ") {
  if (testing::context().target().max_rounds < 1000) return;  // it is computed layer by layer there
  std::vector<std::pair<std::string, std::string>> ways{{"mlp f32 32", "tile"}};
  for (std::int64_t width = 16; testing::every_variant() && width <= 128; width += 16) {
    for (const char* dtype : {"f32", "f16", "bf16"}) ways.emplace_back(fmt::format("mlp {} {}", dtype, width), "tile");
  }
  for (const plan::MatrixShape& shape : testing::context().target().matrix_shapes) {
    if (shape.float16_sums || shape.type != plan::MatrixType::float16) continue;
    for (const int width : {32, 64, 128}) {
      if (width > 32 && !testing::every_variant()) continue;
      ways.emplace_back(fmt::format("mlp f16 {}", width),
                        fmt::format("units{}x{}x{}", shape.rows, shape.columns, shape.k));
    }
  }
  for (const auto& [kind, kernel] : ways) {
    INFO(kind << " by " << kernel);
    CHECK(tune::check(testing::context(), *testing::pipelines(), testing::context().target(), kind, kernel).empty());
  }
  // A network of other weights is not that one.
  plan::Trial trial = ops::checks("mlp f32 32").front();
  REQUIRE(!trial.expected.empty());
  const plan::Target target = ops::with_candidate(testing::context().target(), "mlp f32 32", "tile");
  const auto largest_difference = [&] {
    tune::TrialRun run(testing::context(), *testing::pipelines(), target, trial);
    run.run();
    const std::vector<float> got = run.result();
    double largest = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(got[i]) - static_cast<double>(trial.expected[i])));
    }
    return largest;
  };
  CHECK(largest_difference() <= trial.allowed_difference);
  trial.values[1][5] += 0.1F;
  CHECK(largest_difference() > trial.allowed_difference);
}

TEST_CASE("every kernel of attention is admitted on a driver that computes rightly") {
  const plan::Target target = testing::context().target();
  // Attention is cut into many parts there, or composed of products.
  if (target.max_rounds < 1000 || target.max_storage_buffers < 13) return;
  plan::Target gpu = target;
  gpu.cpu = false;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const plan::Target& wanted : {target, gpu}) {
      if (target.subgroups.size == 4 && !wanted.cpu) continue;  // SwiftShader compiles those for minutes
      for (const ops::AttentionKernel& kernel :
           ops::attention_kernels(wanted, ops::AttentionPass::forward, {}, dtype)) {
        const std::string kind = fmt::format("attention {}", name(dtype));
        INFO(kind << " by " << kernel.name);
        CHECK(tune::check(testing::context(), *testing::pipelines(), testing::context().target(), kind, kernel.name)
                  .empty());
      }
    }
  }
}

TEST_CASE("a result that is not the reference's is refused") {
  plan::Trial trial = ops::gemm_checks("gemm row_row f32 f32").front();
  tune::TrialRun run(testing::context(), *testing::pipelines(), testing::context().target(), trial);
  run.run();
  CHECK(run.result() == trial.expected);  // integers: bit-identical
  const plan::Choice choice = choice_of({{"fastest"}, {"tile32"}});
  const Settled settled = settle(choice, Tuning::off);
  CHECK(settled.finding.ways.front().objection.find("expected HALFSTEP_GEMM") != std::string::npos);
  CHECK(settled.finding.chosen == "tile32");
  CHECK(settled.target.choices.at(choice.key) == "tile32");
  CHECK(settled.changed);
  CHECK_THROWS_WITH_AS(
      settle(choice_of({{"fastest"}}), Tuning::force),
      doctest::Contains("[tune] expected a way to compute gemm row_row f32 f32 that matches its reference"), Error);
}

TEST_CASE("what is risky is refused where there is no process to try it in") {
  if (testing::context().child() != nullptr) return;
  const Settled settled = settle(choice_of({{"tile64", true}, {"tile32", false}}), Tuning::off);
  CHECK(settled.finding.chosen == "tile32");
}

TEST_CASE("a candidate that crashes its first run is refused, and costs nothing else") {
  constexpr const char* kind = "gemm row_row f32 f32";
  const TemporaryFolder cache;
  vk::Notes notes(testing::context().capabilities(), cache.path());
  process::Child child;
  const auto crash = [](std::string_view) -> std::string { std::abort(); };
  tune::Admission admission(testing::context(), *testing::pipelines(), notes, false, &child, crash);
  const plan::Target target = testing::context().target();
  const auto objection = [&](const char* name, bool risky) {
    return admission.verdict(target, kind, {name, risky}).objection;
  };
  CHECK(objection("tile64", true) == "it crashed");
  CHECK(objection("tile64", true) == "it crashed");
  CHECK(objection("tile128", true) == "no process to try it in");
  CHECK(objection("tile32", false).empty());
  const auto noted = [&](const std::string& name) {
    return notes.find(tune::note_key(kind + (" by " + name), testing::context().capabilities(), target));
  };
  CHECK(noted("tile32") == "right");
  CHECK(noted("tile64") == "it crashed");
  // A candidate that was not tried may be tried later.
  CHECK_FALSE(noted("tile128").has_value());
}

TEST_CASE("a driver rounds to f16 where it promises to do as Halfstep does, and did") {
  // lavapipe's packHalf2x16 is right; SwiftShader's makes NaN of infinity.
  const bool is_right = testing::context().capabilities().driver_id == VK_DRIVER_ID_MESA_LLVMPIPE;
  if (!testing::context().target().cpu) return;
  const TemporaryFolder cache;
  for (const Tuning tuning : {Tuning::off, Tuning::on, Tuning::force}) {
    for (const bool promised : {false, true}) {
      CAPTURE(promised);
      plan::Target target = testing::context().target();
      target.float16.rounding_is_promised = promised;
      target.float16.rounded_by_driver = false;
      tune::Tuner tuner(testing::context(), *testing::pipelines(), tuning, cache.path());
      tuner.settle_rounding(target);
      CHECK(target.float16.rounded_by_driver == (is_right && promised && tuning != Tuning::off));
    }
  }
  const vk::Notes notes(testing::context().capabilities(), cache.path());
  plan::Target target = testing::context().target();
  target.float16.rounded_by_driver = false;
  const std::string key = tune::note_key("rounding to f16 by driver", testing::context().capabilities(), target);
  const std::string noted = notes.find(key).value_or("nothing");
  if (is_right) CHECK(noted == "right");
  if (!is_right) CHECK(noted.find("expected 0") != std::string::npos);
}

TEST_CASE("conversions to f16 in the place of packing round the same") {
  // As GPUs with f16 arithmetic have them; lavapipe keeps subnormals, too, though it does not promise to.
  const vk::Capabilities& capabilities = testing::context().capabilities();
  const bool is_patched = vk::settings({}).limits.contains("loop_rounds");
  if (capabilities.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE || !capabilities.float16_arithmetic || is_patched) return;
  vk::patch_shaders([](std::string_view name, const std::vector<std::uint32_t>& words) {
    const std::vector<std::uint32_t> converting = vk::with_half_conversions(words);
    CHECK((name == "rounding_check") == (converting != words));
    return converting;
  });
  vk::Pipelines pipelines(testing::context());
  CHECK(
      tune::check(testing::context(), pipelines, testing::context().target(), std::string(ops::rounding_kind), "driver")
          .empty());
  vk::patch_shaders({});
}

TEST_CASE("a choice once made is kept, and not where nothing is") {
  const plan::Choice choice = choice_of({{"tile64"}, {"tile32"}});
  const TemporaryFolder cache;
  CHECK(settle(choice, Tuning::off, cache.path()).finding.chosen == "tile64");
  const Settled first = settle(choice, Tuning::on, cache.path());
  CHECK(first.finding.reason == "measured");
  CHECK(first.finding.ways.front().microseconds > 0);
  const Settled second = settle(choice, Tuning::on, cache.path());
  CHECK(second.finding.reason == "kept");
  CHECK(second.finding.chosen == first.finding.chosen);
  CHECK(settle(choice, Tuning::force, cache.path()).finding.reason == "measured");
  CHECK(settle(choice, Tuning::on).finding.reason == "by rule");
}

TEST_CASE("nothing is measured where nothing can be stored, and what was kept is taken") {
  const TemporaryFolder folder;
  const std::filesystem::path cache = folder.path() / "cache";
  const plan::Choice choice = choice_of({{"tile64"}, {"tile32"}});
  std::ofstream(cache) << "no folder";
  const Settled none = settle(choice, Tuning::on, cache);
  CHECK(none.finding.reason == "by rule");
  CHECK(none.finding.ways.front().microseconds == 0);
  std::filesystem::remove(cache);
  std::filesystem::create_directory(cache);
  settle(choice, Tuning::off, cache);  // leaves the verdicts
  vk::Notes notes(testing::context().capabilities(), cache);
  plan::Target target = testing::context().target();
  notes.add(tune::note_key(choice.key, testing::context().capabilities(), target), "tile32");
  notes.save();
  plan::Choice larger = choice;
  larger.key += ", larger";
  larger.flops = choice.flops + 1;  // is the first that is settled
  tune::Tuner tuner(testing::context(), *testing::pipelines(), Tuning::on, cache);
  std::filesystem::remove_all(cache);
  std::ofstream(cache) << "no folder";
  CHECK(tuner.settle(std::vector{choice, larger}, target));
  REQUIRE(tuner.findings().size() == 2);
  CHECK(tuner.findings()[0].reason == "by rule, as what was measured cannot be stored");
  CHECK(tuner.findings()[0].chosen == "tile64");
  CHECK(tuner.findings()[1].reason == "kept");
  CHECK(target.choices.at(choice.key) == "tile32");
}

TEST_CASE("what another process stored while this one measured is taken") {
  const plan::Choice choice = choice_of({{"tile64"}, {"tile32"}});
  for (const char* stored : {"tile64", "tile32"}) {
    const TemporaryFolder cache;
    tune::Tuner tuner(testing::context(), *testing::pipelines(), Tuning::on, cache.path());
    vk::Notes others(testing::context().capabilities(), cache.path());
    plan::Target target = testing::context().target();
    others.add(tune::note_key(choice.key, testing::context().capabilities(), target), stored);
    others.save();
    tuner.settle(std::vector{choice}, target);
    CHECK(target.choices.at(choice.key) == stored);
  }
}

TEST_CASE("a program takes the candidate that its target names") {
  Graph graph;
  const Tensor c = matmul(graph.input("a", {5, 7}), graph.input("b", {7, 3}));
  plan::Target target = testing::targets().back();
  target.cpu = false;
  step::ExecutionOptions options;
  options.target = target;
  const step::Execution by_rule(testing::context(), graph::ir_of(c), {c.id()}, options);
  REQUIRE(by_rule.plan().program.choices.size() == 1);
  const plan::Choice& choice = by_rule.plan().program.choices.front();
  CHECK(choice.key == "gemm row_row f32 f32 1x5x3x7");
  REQUIRE(choice.candidates.size() > 1);
  options.target->choices[choice.key] = choice.candidates[1].name;
  const step::Execution chosen(testing::context(), graph::ir_of(c), {c.id()}, options);
  CHECK(chosen.plan().program.dispatches.front().shader == "gemm.row_row.f32." + choice.candidates[1].name);
}

TEST_CASE("HALFSTEP_TUNE is honoured or refused, unless the application has chosen") {
  const Variable off("HALFSTEP_TUNE", "off");
  CHECK(vk::settings({}).tuning == Tuning::off);
  CHECK(vk::settings({.tuning = Tuning::on}).tuning == Tuning::on);
  const Variable fast("HALFSTEP_TUNE", "fast");
  CHECK_THROWS_WITH_AS(vk::settings({}), "[tune] expected HALFSTEP_TUNE to be off, on or force, got fast", Error);
  CHECK(vk::settings({.tuning = Tuning::on}).tuning == Tuning::on);
}

TEST_CASE("an application's settings count before the environment's") {
  const TemporaryFolder cache;
  const Variable tier("HALFSTEP_TIER", "native");
  const Variable fusion("HALFSTEP_FUSION", "on");
  const Variable gemm("HALFSTEP_GEMM", "tile");
  const Variable off("HALFSTEP_CACHE", "off");
  const Device device = Device::open(
      {}, {.tier = "packed", .fusion = false, .gemm = "thin", .cache_folder = cache.path(), .may_fork = false});
  const plan::Target& target = vk::context_of(device).target();
  CHECK(target.float16.storage == plan::Storage16::packed);
  CHECK_FALSE(target.fusion);
  CHECK(target.gemm_kernels == "thin");
  CHECK(vk::context_of(device).child() == nullptr);
  CHECK(vk::context_of(device).settings().cache_folder == cache.path());
  CHECK(vk::settings({}).cache_folder.empty());
  CHECK_THROWS_WITH_AS(Device::open({}, {.tier = "fast"}), doctest::Contains("to be empty, packed or native, got fast"),
                       Error);
}
