#include "vk/shader/shaders.h"

#include <halfstep/halfstep.h>
#include <halfstep/process.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bench/commands.h"
#include "bench/gpus.h"
#include "bench/machine_code.h"
#include "bench/models.h"
#include "bench/prediction.h"
#include "ops/gemm/gemm_kernels.h"
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

struct Options {
  std::string model = "fashion_cnn";
  PrecisionFlags precision;
  std::int64_t batch = 64;
  std::string disassembly;
  bool every_variant = false;
};

struct PredictedDispatch {
  std::string label;
  double milliseconds = 0;
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
  std::string_view bound;   ///< of the longest
  double flops = 0;         ///< of all its dispatches

  std::optional<double> statistic(std::string_view name) const {
    const auto found = std::ranges::find(statistics, name, &vk::Statistic::name);
    return found != statistics.end() ? std::optional(found->value) : std::nullopt;
  }
};

plan::Program program_of(const Options& options, const plan::Target& target) {
  Graph graph;
  const Training model = model_of(options.model).build(graph, options.batch, 3);
  const TrainerOptions training{
      .loss = model.loss, .optimizer = Adam{}, .precision = precision_of(options.precision), .feed = model.feed};
  const step::StepGraph steps = train::training_graph(graph, training);
  return step::training_program(target, steps, step::layout_of(steps), training, {}).plan.program;
}

/// A shader's specialization constants, as its source gives them.
std::map<std::uint32_t, std::uint32_t> default_constants(std::span<const std::uint32_t> words) {
  std::map<std::uint32_t, std::uint32_t> numbers;  // of the constants, by their ids
  std::map<std::uint32_t, std::uint32_t> values;
  vk::for_each_instruction(words, [&](const vk::Instruction& instruction) {
    if (instruction.opcode == vk::op_decorate && instruction.operand(2) == vk::decoration_spec_id)
      numbers[instruction.operand(1)] = instruction.operand(3);
    const auto number = numbers.find(instruction.operand(2));
    if (number == numbers.end()) return;
    if (instruction.opcode == vk::op_spec_constant) values[number->second] = instruction.operand(3);
    if (instruction.opcode == vk::op_spec_constant_true) values[number->second] = 1;
    if (instruction.opcode == vk::op_spec_constant_false) values[number->second] = 0;
  });
  return values;
}

/// Gives a dispatch of a kernel that computes an expression one: the sum of an argument and of what it computes.
/// Drivers take a minute to compile some that were not specialized for one.
void add_expression(plan::Dispatch& dispatch, std::span<const std::uint32_t> words) {
  const std::map<std::uint32_t, std::uint32_t> defaults = default_constants(words);
  if (!defaults.contains(plan::first_expression_constant)) return;
  plan::Expression expression{.result = 0, .reads = {plan::Reading{}}};
  expression.value = expression.add({.op = plan::Op::add, .a = 0, .b = plan::kernel_value});
  for (std::size_t i = dispatch.constants.size(); i < plan::first_expression_constant; ++i) {
    const auto found = defaults.find(static_cast<std::uint32_t>(i));
    dispatch.constants.push_back(found != defaults.end() ? found->second : 0);
  }
  const std::vector<std::uint32_t> constants =
      plan::expression_constants(expression, std::vector<bool>(dispatch.operands.size()));
  dispatch.constants.insert(dispatch.constants.end(), constants.begin(), constants.end());
  dispatch.expression = std::move(expression);
}

/// The kernels for products that the engine has on a target, by their shaders. What matrix units compute is as large as
/// the constants say: no driver compiles it in reasonable time with others.
std::multimap<std::string, ops::GemmKernel> product_kernels(const plan::Target& target) {
  std::map<std::pair<std::string, std::string>, ops::GemmKernel> found;  // by shader and name
  constexpr std::int64_t large = 4096;
  for (int operands = 0; operands <= static_cast<int>(ops::Operands::planes_row); ++operands) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const bool partials : {false, true}) {
        const ops::Problem problem{.operands = static_cast<ops::Operands>(operands),
                                   .dtype = dtype,
                                   .float16_partials = partials,
                                   .rows = large,
                                   .columns = large,
                                   .k = large};
        for (const ops::GemmKernel& kernel : ops::gemm_kernels(target, problem)) {
          found.try_emplace({kernel.shader, kernel.name + (kernel.bfloat16_matrices ? ".bf16" : "")}, kernel);
        }
      }
    }
  }
  std::multimap<std::string, ops::GemmKernel> by_shader;
  for (const auto& [key, kernel] : found) by_shader.emplace(key.first, kernel);
  return by_shader;
}

/// The specialization constants of a product that has nothing but A, B and C: see shaders/gemm/gemm.glsl.
std::vector<std::uint32_t> constants_of(const ops::GemmKernel& kernel) {
  constexpr std::uint32_t quad_elements = 4;
  std::vector<std::uint32_t> constants{kernel.local_size, 0, 0, 0, quad_elements, 0, 0};
  constants.insert(constants.end(), kernel.constants.begin(), kernel.constants.end());
  return constants;
}

/// Whether a variant's name says which operands it multiplies: "gemm_uniform.row_row.f32".
bool is_product(std::string_view shader) {
  return shader.starts_with("gemm") && (shader.find("_row.") != shader.npos || shader.find("_col.") != shader.npos);
}

/// A dispatch of every variant that reads buffers only, with the constants that its source gives, and of products one
/// for each kernel that the target has. Those for matrix units are left out where there are none: a compiler may crash
/// on them.
plan::Program every_variant(const plan::Target& target) {
  plan::Program program;
  const std::multimap<std::string, ops::GemmKernel> products = product_kernels(target);
  for (const std::string_view name : vk::shader_names()) {
    if (name.ends_with("_texels") || name.starts_with("gemm_runs.")) continue;  // for software drivers
    if (target.matrix_shapes.empty() && name.find("_cooperative") != std::string_view::npos) continue;
    const std::span<const std::uint32_t> words = vk::find_shader(name).words;
    plan::Dispatch dispatch;
    dispatch.label = dispatch.shader = name;
    dispatch.push.resize(128);
    dispatch.operands.resize(vk::shader_facts(words, {}).bindings, {0, plan::Access::read});
    const auto [first, last] = products.equal_range(dispatch.shader);
    for (auto each = first; each != last; ++each) {
      plan::Dispatch& product = program.dispatches.emplace_back(dispatch);
      product.label = each->second.name;
      product.constants = constants_of(each->second);
      product.bfloat16_matrices = each->second.bfloat16_matrices;
      add_expression(product, words);
    }
    if (first != last || is_product(name)) continue;
    add_expression(dispatch, words);
    program.dispatches.push_back(std::move(dispatch));
  }
  return program;
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
  kernel.predictions.push_back({dispatch.label, prediction.milliseconds});
  kernel.milliseconds += prediction.milliseconds;
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
  if (predicted) fmt::print(" | {:>9.4f}  {}", kernel.milliseconds, kernel.bound);
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
             "other", "lds", "wide", "wait", predicted ? " | predicted ms" : "");
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

std::vector<Kernel> print_step(const Options& options, vk::Context& context, const std::optional<Gpu>& gpu) {
  plan::Target target = context.target();
  // As on a device that keeps its promise, which a device that only compiles cannot show.
  target.float16.rounded_by_driver |= target.float16.rounding_is_promised;
  const plan::Program program = program_of(options, target);
  std::vector<Kernel> kernels = kernels_of(context, program, gpu, [](const Kernel&) {});
  fmt::print("{}, {}: {} {}, {} dispatches by {} pipelines\n", context.info().name, context.info().driver,
             options.model, options.precision.name, program.dispatches.size(), kernels.size());
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
    row["bound"] = kernel.bound;
    if (kernel.flops > 0) row["predicted_gflops"] = kernel.flops / kernel.milliseconds / 1e6;
    row["card"] = gpu->card;
    for (const PredictedDispatch& each : kernel.predictions) {
      row["predictions"].push_back({{"label", each.label}, {"ms", each.milliseconds}});
    }
  }
  return row;
}

void run(const Options& options, const Bench& bench, const std::filesystem::path& json) {
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
  if (json.empty()) return;
  ordered_json file{{"device", context.info().name},
                    {"driver", context.info().driver},
                    {"model", options.every_variant ? "" : options.model},
                    {"precision", options.precision.name},
                    {"kernels", ordered_json::array()}};
  for (const Kernel& kernel : kernels) file["kernels"].push_back(json_of(kernel, gpu));
  const std::string text = file.dump(2) + "\n";
  const Bytes part = std::as_bytes(std::span(text));
  write_atomically(json, std::span(&part, 1));
}

}  // namespace

Command add_shaders(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "shaders", "What the driver compiles the kernels of a model's step to; nothing runs, and no memory is allocated");
  const auto options = std::make_shared<Options>();
  command->add_option("--model", options->model, "What is trained, or a single operator of a large size")
      ->check(any_model())
      ->capture_default_str();
  add_precision(*command, options->precision);
  command->add_option("--batch", options->batch, "Samples in a step")
      ->transform(samples::whole_number(1, 65536))
      ->capture_default_str();
  command->add_option("--disassembly", options->disassembly,
                      "Print the instructions of kernels with this in their name");
  command->add_flag("--every-variant", options->every_variant,
                    "Every kernel that reads buffers, not those of a model's step");
  return {command, [options](const Bench& bench, const std::filesystem::path& json) { run(*options, bench, json); }};
}

}  // namespace bench
