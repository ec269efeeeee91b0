#include "vk/shader/shaders.h"

#include <halfstep/halfstep.h>
#include <halfstep/process.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bench/commands.h"
#include "bench/every_variant.h"
#include "bench/gpus.h"
#include "bench/machine_code.h"
#include "bench/models.h"
#include "bench/prediction.h"
#include "samples/common/command_line.h"
#include "step/step_program.h"
#include "train/step_graph.h"
#include "vk/shader/executables.h"
#include "vk/shader/pipelines.h"
#include "vk/shader/spirv.h"

namespace bench {
namespace {

using namespace halfstep;
using nlohmann::ordered_json;

struct ShadersOptions {
  std::string model = "fashion_cnn";
  PrecisionFlags precision;
  std::int64_t batch = 64;
  std::string disassembly;
  bool every_variant = false;
  double least = 0;  ///< percent of the GPU's peak
};

struct PredictedDispatch {
  std::string label;
  double milliseconds = 0;
  double at_peak = 0;
};

/// A pipeline, and the dispatches that use it.
struct Kernel {
  std::string label;  ///< of the first dispatch
  std::string shader;
  std::vector<std::uint32_t> constants;
  std::size_t dispatches = 0;
  std::uint32_t lanes = 0;
  std::vector<vk::Statistic> statistics;
  std::string disassembly;
  MachineCode code;
  std::vector<PredictedDispatch> predictions;
  double milliseconds = 0;  ///< of all predictions
  double at_peak = 0;       ///< likewise
  std::string_view bound;   ///< of the longest
  double flops = 0;         ///< of all its dispatches

  std::optional<double> statistic(std::string_view name) const {
    const auto found = std::ranges::find(statistics, name, &vk::Statistic::name);
    return found != statistics.end() ? std::optional(found->value) : std::nullopt;
  }
};

plan::Plan plan_of(const ShadersOptions& options, const plan::Target& target) {
  Graph graph;
  const Training model = model_of(options.model).build(graph, options.batch, 3);
  const TrainerOptions training{
      .loss = model.loss, .optimizer = Adam{}, .precision = precision_of(options.precision), .feed = model.feed};
  const step::StepGraph steps = train::training_graph(graph, training);
  return step::training_program(target, steps, step::layout_of(steps), training, {}).plan;
}

/// How many subgroups a SIMD needs to be busy, by the compiler's estimates.
double parallelism_of(const Kernel& kernel) {
  const auto latency = kernel.statistic("Latency");
  const auto throughput = kernel.statistic("Inverse Throughput");
  return latency && throughput && *throughput > 0 ? std::max(1.0, *latency / *throughput) : 1;
}

void predict_dispatch(Kernel& kernel, const Gpu& gpu, const plan::Program& program, const plan::Dispatch& dispatch) {
  const auto [x, y, z] = vk::shader_facts(vk::find_shader(dispatch.shader).words, dispatch.constants).local_size;
  const Prediction prediction =
      predict(gpu, {.flops = dispatch.flops,
                    .bytes = static_cast<double>(plan::bytes_touched(program, dispatch)),
                    .groups = static_cast<double>(dispatch.groups[0]) * dispatch.groups[1] * dispatch.groups[2],
                    .invocations = x * y * z,
                    .lanes = kernel.lanes,
                    .parallelism = parallelism_of(kernel),
                    .code = kernel.code});
  kernel.predictions.push_back({dispatch.label, prediction.milliseconds, prediction.at_peak});
  kernel.milliseconds += prediction.milliseconds;
  kernel.at_peak += prediction.at_peak;
  kernel.flops += dispatch.flops;
  if (kernel.bound.empty()) kernel.bound = prediction.bound;
}

Kernel compiled(const vk::Context& context, const vk::Pipeline& pipeline, const plan::Dispatch& dispatch) {
  Kernel kernel;
  kernel.label = dispatch.label;
  kernel.shader = dispatch.shader;
  kernel.constants = dispatch.constants;
  for (vk::Executable& executable : vk::executables_of(context, pipeline.handle)) {
    kernel.lanes = executable.subgroup_size;
    kernel.statistics = std::move(executable.statistics);
    kernel.disassembly = std::move(executable.disassembly);
  }
  kernel.code = read_machine_code(kernel.disassembly);
  return kernel;
}

/// The kernels of a program, the most costly first. `compiled_one` is called with each when it is compiled.
std::vector<Kernel> kernels_of(vk::Context& context, const plan::Program& program, const std::optional<Gpu>& gpu,
                               const std::function<void(const Kernel&)>& compiled_one) {
  vk::Pipelines pipelines(context, vk::Pipelines::Capture::yes);
  std::map<VkPipeline, std::size_t> known;
  std::vector<Kernel> kernels;
  for (const plan::Dispatch& dispatch : program.dispatches) {
    const vk::Pipeline& pipeline = pipelines.get(dispatch);
    const auto [found, fresh] = known.try_emplace(pipeline.handle, kernels.size());
    if (fresh) {
      kernels.push_back(compiled(context, pipeline, dispatch));
      compiled_one(kernels.back());
    }
    Kernel& kernel = kernels[found->second];
    ++kernel.dispatches;
    if (gpu) predict_dispatch(kernel, *gpu, program, dispatch);
  }
  std::ranges::stable_sort(kernels, std::greater{}, &Kernel::milliseconds);
  return kernels;
}

/// The instructions of its inner loop; of all of it, if there is no loop that has multiply-adds.
const Mix& shown_mix(const Kernel& kernel) {
  const Mix& loop = kernel.code.inner_loop;
  return loop.flops(1) > 0 || loop.matrix > 0 ? loop : kernel.code.whole;
}

void print_amd(const Kernel& kernel, bool predicted) {
  const auto number = [&](std::string_view name) { return kernel.statistic(name).value_or(0); };
  const Mix& mix = shown_mix(kernel);
  fmt::print("{:<38} {:>4} {:>5} {:>6} {:>6} {:>5} {:>7} {:>8} | {:>4} {:>4} {:>4} {:>5} {:>5} {:>4} {:>3}/{:<3} {:>4}",
             kernel.shader, kernel.dispatches, number("VGPRs"), number("Spilled VGPRs") + number("Spilled SGPRs"),
             number("LDS size"), number("Subgroups per SIMD"), number("Code size"), number("Inverse Throughput"),
             mix.matrix, mix.packed16, mix.mixed16, mix.float32, mix.vector_other, mix.local,
             mix.loads - mix.narrow_loads, mix.loads, mix.waits);
  if (predicted) {
    fmt::print(" | {:>9.4f} {:>3.0f}%  {}", kernel.milliseconds, 100 * kernel.at_peak / kernel.milliseconds,
               kernel.bound);
  }
  fmt::print("\n");
}

void print_any(const Kernel& kernel) {
  fmt::print("{}, {} dispatches, subgroups of {}\n", kernel.shader, kernel.dispatches, kernel.lanes);
  for (const vk::Statistic& statistic : kernel.statistics) fmt::print("  {}: {}\n", statistic.name, statistic.value);
}

bool by_amd(const Kernel& kernel) {
  return kernel.statistic("VGPRs").has_value();
}

void print_header(bool predicted) {
  fmt::print("{:<38} {:>4} {:>5} {:>6} {:>6} {:>5} {:>7} {:>8} | {:>4} {:>4} {:>4} {:>5} {:>5} {:>4} {:>7} {:>4}{}\n",
             "kernel", "uses", "VGPRs", "spills", "LDS", "waves", "bytes", "1/thr", "mat", "pk16", "mix", "f32",
             "other", "lds", "wide", "wait", predicted ? " | predicted ms, of peak" : "");
}

void print(const Kernel& kernel, bool predicted) {
  by_amd(kernel) ? print_amd(kernel, predicted) : print_any(kernel);
}

/// Prints the kernels of a model's step, and what it takes on the card `gpu`, if that is known.
void print(const std::vector<Kernel>& kernels, const std::optional<Gpu>& gpu) {
  if (std::ranges::any_of(kernels, by_amd)) print_header(gpu.has_value());
  double milliseconds = 0;
  double flops = 0;
  for (const Kernel& kernel : kernels) {
    print(kernel, gpu.has_value());
    milliseconds += kernel.milliseconds;
    flops += kernel.flops;
  }
  if (!gpu) return;
  fmt::print("predicted for a {}: {:.4f} ms, {:.1f} GFLOPS. Not measured: launches and caches are not modelled.\n",
             gpu->card, milliseconds, flops / milliseconds / 1e6);
}

/// Compiles every variant, which takes minutes, and prints each at once, so that it can be seen and interrupted.
std::vector<Kernel> print_every_variant(vk::Context& context) {
  const plan::Program program = every_variant(context.target());
  fmt::print("{}, {}: {} variants\n", context.info().name, context.info().driver, program.dispatches.size());
  bool first = true;
  return kernels_of(context, program, std::nullopt, [&first](const Kernel& kernel) {
    if (std::exchange(first, false) && by_amd(kernel)) print_header(false);
    print(kernel, false);
    std::fflush(stdout);
  });
}

std::vector<Kernel> print_step(const ShadersOptions& options, vk::Context& context, const std::optional<Gpu>& gpu) {
  plan::Target target = context.target();
  // As on a device that keeps its promise, which a device that only compiles cannot show.
  target.float16.rounded_by_driver |= target.float16.rounding_is_promised;
  const plan::Plan plan = plan_of(options, target);
  std::vector<Kernel> kernels = kernels_of(context, plan.program, gpu, [](const Kernel&) {});
  fmt::print("{}, {}: {} {}, {} dispatches by {} pipelines, {} barriers, {:.1f} MiB in one arena\n",
             context.info().name, context.info().driver, options.model, options.precision.name,
             plan.program.dispatches.size(), kernels.size(), plan.barriers(),
             static_cast<double>(plan.arena.bytes) / (1 << 20));
  print(kernels, gpu);
  return kernels;
}

ordered_json json_of(const Mix& mix) {
  return {{"matrix", mix.matrix},     {"packed16", mix.packed16},
          {"mixed16", mix.mixed16},   {"float32", mix.float32},
          {"paired32", mix.paired32}, {"vector_other", mix.vector_other},
          {"slow", mix.slow},         {"scalar", mix.scalar},
          {"local", mix.local},       {"local_bytes", mix.local_bytes},
          {"loads", mix.loads},       {"narrow_loads", mix.narrow_loads},
          {"stores", mix.stores},     {"spills", mix.spills},
          {"waits", mix.waits}};
}

ordered_json json_of(const Kernel& kernel, const std::optional<Gpu>& gpu) {
  ordered_json row{{"label", kernel.label},         {"shader", kernel.shader},
                   {"constants", kernel.constants}, {"dispatches", kernel.dispatches},
                   {"subgroup_size", kernel.lanes}, {"statistics", ordered_json::object()}};
  for (const vk::Statistic& statistic : kernel.statistics) row["statistics"][statistic.name] = statistic.value;
  row["whole"] = json_of(kernel.code.whole);
  row["inner_loop"] = json_of(kernel.code.inner_loop);
  if (kernel.milliseconds > 0) {
    row["predicted_ms"] = kernel.milliseconds;
    row["at_peak_ms"] = kernel.at_peak;
    row["bound"] = kernel.bound;
    if (kernel.flops > 0) row["predicted_gflops"] = kernel.flops / kernel.milliseconds / 1e6;
    row["card"] = gpu->card;
    for (const PredictedDispatch& each : kernel.predictions) {
      row["predictions"].push_back({{"label", each.label}, {"ms", each.milliseconds}, {"at_peak_ms", each.at_peak}});
    }
  }
  return row;
}

void write_json(const std::filesystem::path& json, const ShadersOptions& options, const DeviceInfo& device,
                const std::vector<Kernel>& kernels, const std::optional<Gpu>& gpu) {
  ordered_json file{{"device", device.name},
                    {"driver", device.driver},
                    {"model", options.every_variant ? "" : options.model},
                    {"precision", options.precision.name},
                    {"kernels", ordered_json::array()}};
  for (const Kernel& kernel : kernels) file["kernels"].push_back(json_of(kernel, gpu));
  const std::string text = file.dump(2) + "\n";
  const Bytes part = std::as_bytes(std::span(text));
  write_atomically(json, std::span(&part, 1));
}

/// What a kernel lacks beside the least part of the peak that its dispatches are to reach.
std::vector<std::string> shortcomings(const Kernel& kernel, const ShadersOptions& options, const plan::Target& target,
                                      double step_milliseconds) {
  constexpr double small = 0.01;  // of the step: too short to occupy a GPU, and of no account
  std::vector<std::string> found;
  for (const PredictedDispatch& each : kernel.predictions) {
    const double percent = 100 * each.at_peak / each.milliseconds;
    if (each.milliseconds < small * step_milliseconds || percent >= options.least) continue;
    found.push_back(fmt::format("{} ({}) at {:.0f}%", each.label, kernel.shader, percent));
  }
  const Mix& loop = kernel.code.inner_loop;
  if (kernel.flops <= 0 || loop.flops(1) <= 0) return found;
  if (loop.narrow_loads > 0) {
    found.push_back(fmt::format("{} with {} loads of less than 128 bits", kernel.shader, loop.narrow_loads));
  }
  const Compute products = precision_of(options.precision).lists.products;
  if (!target.matrix_shapes.empty() && products != DType::f32 && loop.matrix == 0) {
    found.push_back(fmt::format("{} without matrix units", kernel.shader));
  }
  return found;
}

/// Throws Error, with all shortcomings, if there are any.
void expect_peak(const std::vector<Kernel>& kernels, const ShadersOptions& options, const plan::Target& target) {
  double milliseconds = 0;
  for (const Kernel& kernel : kernels) milliseconds += kernel.milliseconds;
  if (milliseconds <= 0) {
    fail("bench", "expected a GPU whose peak is known, for --least, got another", "gpus.cpp has a table of them");
  }
  std::vector<std::string> found;
  for (const Kernel& kernel : kernels) {
    std::ranges::move(shortcomings(kernel, options, target, milliseconds), std::back_inserter(found));
  }
  if (found.empty()) return;
  fail("bench", fmt::format("expected {}% of the GPU's peak, got {}", options.least, fmt::join(found, ", ")));
}

void run(const ShadersOptions& options, const Bench& bench, const std::filesystem::path& json) {
  vk::Context& context = vk::context_of(bench.device());
  const std::optional<Gpu> gpu = gpu_of(context.info().name);
  const std::vector<Kernel> kernels =
      options.every_variant ? print_every_variant(context) : print_step(options, context, gpu);
  if (!options.disassembly.empty()) {
    for (const Kernel& kernel : kernels) {
      if (kernel.shader.find(options.disassembly) == std::string::npos) continue;
      fmt::print("\n{}\n{}", kernel.shader, kernel.disassembly);
    }
  }
  if (!json.empty()) write_json(json, options, context.info(), kernels, gpu);
  if (options.least > 0) expect_peak(kernels, options, context.target());
}

}  // namespace

Command add_shaders(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "shaders", "What the driver compiles the kernels of a model's step to; nothing runs, and no memory is allocated");
  const auto options = std::make_shared<ShadersOptions>();
  command->add_option("--model", options->model, "What is trained, or a single operator of a large size")
      ->check(any_model())
      ->capture_default_str();
  add_precision(*command, options->precision);
  command->add_option("--batch", options->batch, "Samples in a step")
      ->transform(samples::whole_number(1, 65536))
      ->capture_default_str();
  command->add_option("--disassembly", options->disassembly,
                      "Print the instructions of kernels with this in their name");
  CLI::Option* least = command->add_option(
      "--least", options->least,
      "Fail unless each dispatch that takes a hundredth of the step reaches this percentage of the GPU's peak, as "
      "predicted, and products load 128 bits at once, and take matrix units where there are any");
  least->check(CLI::Range(0.0, 100.0));
  command
      ->add_flag("--every-variant", options->every_variant,
                 "Every kernel that reads buffers, not those of a model's step")
      ->excludes(least);
  return {command, [options](const Bench& bench, const std::filesystem::path& json) { run(*options, bench, json); }};
}

}  // namespace bench
