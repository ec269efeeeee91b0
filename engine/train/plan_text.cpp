#include <fmt/format.h>

#include <iterator>

#include "state/buffers.h"
#include "train/texts.h"

namespace halfstep::train {
namespace {

/// The price of what is computed again. How much longer it takes lies between the shares of operations and of bytes.
std::string recomputation(const PlanSummary& summary) {
  const double flops = summary.flops - summary.recomputed_flops;
  const auto moved = static_cast<double>(summary.bytes_moved - summary.recomputed_bytes_moved);
  const auto recomputed_moved = static_cast<double>(summary.recomputed_bytes_moved);
  return fmt::format(
      "recomputed: activations take {} bytes, and would take {} if all were kept; the step takes {:.4g} GFLOP more "
      "({:.1f}%) and moves {:.4g} MB more ({:.1f}%)\n",
      summary.arena_bytes, summary.arena_bytes_kept, summary.recomputed_flops / 1e9,
      flops > 0 ? 100 * summary.recomputed_flops / flops : 0, recomputed_moved / 1e6, 100 * recomputed_moved / moved);
}

}  // namespace

PlanSummary summarize(const plan::Plan& plan, const state::StoreSpec& spec) {
  namespace buffers = state::buffers;
  const auto bytes = [&](auto... ids) { return (state::bytes_of(ids, spec) + ...); };
  PlanSummary summary;
  summary.parameters = spec.layout.parameters.count();
  summary.dispatches = plan.program.dispatches.size();
  summary.barriers = plan.barriers();
  summary.arena_bytes = plan.arena.bytes;
  summary.arena_bytes_unshared = plan.arena.bytes_unshared;
  for (const plan::Dispatch& dispatch : plan.program.dispatches) {
    const std::uint64_t moved = plan::bytes_touched(plan.program, dispatch);
    summary.flops += dispatch.flops;
    summary.bytes_moved += moved;
    if (!dispatch.recomputed) continue;
    summary.recomputed_flops += dispatch.flops;
    summary.recomputed_bytes_moved += moved;
  }
  summary.weight_bytes = bytes(buffers::weights, buffers::masters);
  summary.gradient_bytes = bytes(buffers::gradients, buffers::gradient_sums, buffers::gradient_scales);
  summary.optimizer_bytes = bytes(buffers::moments);
  summary.average_bytes = bytes(buffers::averages, buffers::averaged_weights);
  summary.data_bytes = bytes(buffers::data);
  return summary;
}

std::string plan_text(const PlanSummary& summary, const plan::Plan& plan, const state::StoreSpec& spec) {
  const std::string read(name(spec.weights.compute));
  const std::string part =
      spec.layout.shard ? fmt::format(" of this rank's part, 1 of {}", spec.exchange->size()) : std::string();
  const std::string weights = spec.weights.copy ? read + ", with f32 masters" + part : read;
  const std::string scales = spec.weights.scaled ? ", with a scale for each tensor" : "";
  const std::string sums = spec.micro_batches > 1 ? ", with f32 sums over micro-batches" : "";
  const std::string averages =
      state::bytes_of(state::buffers::averaged_weights, spec) > 0 ? "f32, and in f16 for evaluation" : "f32";
  std::string text = fmt::format("{} parameters to train\n", summary.parameters);
  const auto print = [&](std::uint64_t bytes, std::string_view store, std::string_view kept) {
    if (bytes > 0) fmt::format_to(std::back_inserter(text), "{:>14} bytes of {} ({})\n", bytes, store, kept);
  };
  print(summary.weight_bytes, "weights", weights);
  print(summary.gradient_bytes, "gradients", read + scales + sums);
  print(summary.optimizer_bytes, "optimizer state", fmt::format("{}{}", name(spec.weights.moments), part));
  print(summary.average_bytes, "averages of weights", averages);
  print(summary.arena_bytes, "activations", "one arena");
  print(summary.data_bytes, "samples", "the training set");
  if (summary.recomputed_flops > 0 || summary.recomputed_bytes_moved > 0) text += recomputation(summary);
  return text + plan.text();
}

}  // namespace halfstep::train
