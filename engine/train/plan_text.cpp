#include <fmt/format.h>

#include <iterator>

#include "train/trainer_impl.h"

namespace halfstep {

/// What the step takes in memory, store by store, then its dispatches.
std::string Trainer::Impl::plan() const {
  const std::string read(name(form_.compute));
  const std::string weights = form_.copy ? read + ", with f32 masters" : read;
  const std::string scales = form_.scaled ? ", with a scale for each tensor" : "";
  const std::string sums = accumulate_ > 1 ? ", with f32 sums over micro-batches" : "";
  const std::string averages =
      store_bytes(state::buffers::averaged_weights) > 0 ? "f32, and in f16 for evaluation" : "f32";
  std::string text = fmt::format("{} parameters to train\n", summary_.parameters);
  const auto print = [&](std::uint64_t bytes, std::string_view store, std::string_view form) {
    if (bytes > 0) fmt::format_to(std::back_inserter(text), "{:>14} bytes of {} ({})\n", bytes, store, form);
  };
  print(summary_.weight_bytes, "weights", weights);
  print(summary_.gradient_bytes, "gradients", read + scales + sums);
  print(summary_.optimizer_bytes, "optimizer state", name(form_.moments));
  print(summary_.average_bytes, "averages of weights", averages);
  print(summary_.arena_bytes, "activations", "one arena");
  print(summary_.data_bytes, "samples", "the training set");
  if (summary_.flops_again > 0 || summary_.bytes_moved_again > 0) text += recomputation();
  return text + training_.plan.text();
}

/// The price of what is computed again. How much longer it takes lies between the shares of operations and of bytes.
std::string Trainer::Impl::recomputation() const {
  const double flops = summary_.flops - summary_.flops_again;
  const auto moved = static_cast<double>(summary_.bytes_moved - summary_.bytes_moved_again);
  const auto moved_again = static_cast<double>(summary_.bytes_moved_again);
  return fmt::format(
      "recomputed: activations take {} bytes, and would take {} if all were kept; the step takes {:.4g} GFLOP more "
      "({:.1f}%) and moves {:.4g} MB more ({:.1f}%)\n",
      summary_.arena_bytes, summary_.arena_bytes_kept, summary_.flops_again / 1e9,
      flops > 0 ? 100 * summary_.flops_again / flops : 0, moved_again / 1e6, 100 * moved_again / moved);
}

}  // namespace halfstep
