// A trainer whose steps are cut to fit the device's memory.
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph/ir.h"
#include "train/trainer_impl.h"

namespace halfstep {
namespace {

/// What is recomputed, from the least to the most: nothing, or as asked; else the outermost scopes, those within, ...
std::vector<std::string> recomputations(const Graph& graph, const std::string& asked) {
  constexpr std::size_t deepest = 4;
  if (!asked.empty()) return {asked};
  std::size_t depth = 0;
  for (const graph::Node& node : graph.ir().nodes) {
    if (node.scope.empty()) continue;
    depth = std::max(depth, 1 + static_cast<std::size_t>(std::ranges::count(node.scope, '/')));
  }
  std::vector<std::string> patterns{""};
  std::string pattern = "*";
  for (std::size_t i = 0; i < std::min(depth, deepest); ++i, pattern += "/*") patterns.push_back(pattern);
  return patterns;
}

/// One way to fit a step.
struct Cut {
  std::int64_t micro_batches = 1;
  std::int64_t batch = 1;  ///< of each
  std::string recompute;

  std::string text() const {
    return fmt::format("{} of {}, {}", micro_batches == 1 ? "a batch" : fmt::format("{} micro-batches", micro_batches),
                       batch, recompute.empty() ? "nothing recomputed" : fmt::format("'{}' recomputed", recompute));
  }
};

}  // namespace

Trainer Trainer::compile(const Device& device, const Model& model, std::int64_t batch) {
  if (batch < 1) fail("trainer", fmt::format("expected a batch of at least 1, got {}", batch));
  std::optional<Error> too_large;
  for (Cut cut; cut.micro_batches <= batch; ++cut.micro_batches) {
    if (batch % cut.micro_batches != 0) continue;
    cut.batch = batch / cut.micro_batches;
    Graph graph;
    const TrainerOptions asked = model(graph, cut.batch);
    for (const std::string& pattern : recomputations(graph, asked.recompute)) {
      cut.recompute = pattern;
      TrainerOptions options = asked;
      options.accumulate *= cut.micro_batches;
      options.recompute = cut.recompute;
      // Only what is compiled in the end is told of.
      std::vector<std::string> lines;
      if (asked.log) options.log = [&lines](const std::string& line) { lines.push_back(line); };
      const std::uint64_t before = vk::context_of(device).buffer_bytes();
      try {
        Trainer trainer = compile(device, graph, options);
        if (!asked.log) return trainer;
        trainer.origin_->options.log = asked.log;
        for (const std::string& line : lines) asked.log(line);
        asked.log(fmt::format("memory: {}: {} bytes predicted, {} allocated", cut.text(),
                              trainer.impl().summary.peak_bytes, vk::context_of(device).buffer_bytes() - before));
        return trainer;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::out_of_memory) throw;
        too_large = error;
      }
    }
  }
  throw *too_large;
}

}  // namespace halfstep
