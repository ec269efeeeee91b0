// A trainer whose steps are cut to fit the device's memory.
#include <halfstep/error.h>
#include <halfstep/inspector.h>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>

#include "base/beyond_limit.h"
#include "graph/ir.h"
#include "train/memory_need.h"
#include "train/step_graph.h"
#include "vk/device/context.h"

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

/// Lines for a log that is told of them when it is known that they hold.
struct Lines {
  std::vector<std::string> kept;
  bool hold = false;
};

Trainer compile_cut(const Device& device, const Graph& graph, const TrainerOptions& asked, const Cut& cut) {
  TrainerOptions options = asked;
  options.accumulate *= cut.micro_batches;
  options.recompute = cut.recompute;
  const auto lines = std::make_shared<Lines>();
  if (asked.log) {
    options.log = [lines, log = asked.log](const std::string& line) {
      if (lines->hold) log(line);
      if (!lines->hold) lines->kept.push_back(line);
    };
  }
  const std::uint64_t before = vk::context_of(device).buffer_bytes();
  Trainer trainer = Trainer::compile(device, graph, options);
  if (!asked.log) return trainer;
  lines->hold = true;
  for (const std::string& line : lines->kept) asked.log(line);
  asked.log(fmt::format("memory: {}: {} bytes predicted, {} allocated", cut.text(),
                        trainer.inspect().summary().peak_bytes, vk::context_of(device).buffer_bytes() - before));
  return trainer;
}

}  // namespace

Trainer Trainer::compile(const Device& device, const Model& model, std::int64_t batch) {
  if (!model) fail("trainer", "expected a function that builds the model, got none");
  if (batch < 1) fail("trainer", fmt::format("expected a batch of at least 1, got {}", batch));
  std::exception_ptr last;
  std::optional<train::TooLarge> failed;  // the least of the last size whose memory is known
  std::int64_t failed_batch = batch;
  for (Cut cut; cut.micro_batches <= batch; ++cut.micro_batches) {
    if (batch % cut.micro_batches != 0) continue;
    cut.batch = batch / cut.micro_batches;
    const double part = static_cast<double>(cut.batch) / static_cast<double>(failed_batch);
    if (failed && cut.batch > 1 && !failed->may_fit(part)) continue;
    if (failed && !failed->may_fit(0)) break;
    Graph graph;
    const TrainerOptions asked = model(graph, cut.batch);
    if (cut.micro_batches > 1 && asked.accumulate > train::most_micro_batches / cut.micro_batches) break;
    for (const std::string& pattern : recomputations(graph, asked.recompute)) {
      cut.recompute = pattern;
      try {
        return compile_cut(device, graph, asked, cut);
      } catch (const train::TooLarge& error) {
        failed = error;
        failed_batch = cut.batch;
        last = std::current_exception();
      } catch (const BeyondLimit&) {
        last = std::current_exception();
        break;  // recomputing makes no tensor smaller
      }
    }
  }
  std::rethrow_exception(last);
}

}  // namespace halfstep
