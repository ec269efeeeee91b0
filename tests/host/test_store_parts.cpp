// Buffers of a store that are larger than the device's largest buffer.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/rank_of.h"
#include "models/layers.h"
#include "plan/windows.h"
#include "state/parts.h"
#include "step/step_program.h"
#include "train/step_graph.h"

namespace halfstep {
namespace {

using Begins = std::vector<std::uint64_t>;

bool in_one_part(const Begins& begins, std::uint64_t first, std::uint64_t bytes) {
  return std::ranges::upper_bound(begins, first) == std::ranges::lower_bound(begins, first + bytes);
}

/// Layers of odd sizes, norms whose parameters are read in f32, states, a table with a large gradient, frozen weights.
struct Model {
  Graph graph;
  TrainerOptions options{};

  explicit Model(const Precision& precision) {
    const Tensor images = graph.input("images", {4, 6, 5, 1});
    const Tensor labels = graph.input("labels", {4}, DType::u32);
    Tensor x = flatten(images);
    for (const std::int64_t units : {37, 150, 41, 93, 8}) {
      const Scope scope = graph.root() / ("layer" + std::to_string(units));
      x = relu(models::batch_norm(scope / "norm", models::dense(scope, x, units)));
    }
    options.loss = cross_entropy(models::dense(graph.root() / "last", x, 3), labels);
    options.optimizer = RmsProp{.momentum = 0.9F, .centered = true};
    options.groups = {{.pattern = "layer41/*", .optimizer = Sgd{.rate = 0.1F, .momentum = 0.9F}},
                      {.pattern = "layer93/*", .frozen = true}};
    options.clip_norm = 1;
    options.weight_limit = 2;
    options.accumulate = 2;
    options.precision = precision;
    options.feed = Feed{.samples = images, .labels = labels};
  }
};

plan::Target target_of(std::uint64_t part_bytes, std::uint64_t range) {
  plan::Target target;
  target.float16.words = true;
  target.subgroups.size = 8;
  target.subgroups.shuffle = true;
  target.max_invocations = 1024;
  target.max_storage_buffers = 1000;
  target.part_bytes = part_bytes;
  target.max_storage_range = range;
  return target;
}

/// Checks each binding of a program, and notes the buffers of which it binds something in a part after the first.
void check_program(const plan::Program& program, const state::Parts& parts, std::set<std::string>& in_later_parts) {
  for (const plan::Dispatch& dispatch : program.dispatches) {
    for (const plan::BoundPart& bound : plan::bound_parts(program, dispatch)) {
      const plan::ProgramTensor& tensor = program.tensors[dispatch.operands[bound.operand].tensor];
      const plan::BufferId buffer = tensor.region.buffer;
      if (buffer >= state::buffers::table.size()) continue;
      const std::uint64_t first = tensor.region.offset + bound.offset;
      const Begins& begins = parts.begins(buffer);
      if (begins.empty()) continue;
      CAPTURE(dispatch.label);
      CAPTURE(tensor.name);
      REQUIRE(in_one_part(begins, first, bound.bytes));
      const std::uint64_t begin = first < begins.front() ? 0 : *(std::ranges::upper_bound(begins, first) - 1);
      REQUIRE((first - begin) % 256 == 0);
      if (begin > 0) in_later_parts.insert(program.buffers[buffer]);
    }
  }
}

}  // namespace

TEST_CASE("of a buffer in parts each tensor lies in one of them, and of a larger one each window and whole blocks") {
  std::mt19937 random(7);
  int larger = 0;
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t part = std::uint64_t{4096} << random() % 4;
    state::Extents tensors;
    std::uint64_t end = 0;
    for (std::uint32_t i = 0; i < 1 + random() % 40; ++i) {
      const std::uint64_t block = 256 * (1 + random() % 6);
      const std::uint64_t bytes = block * (1 + random() % (random() % 8 == 0 ? 200 : 12));
      tensors.push_back({end, end + bytes, block});
      end += bytes;
    }
    const Begins begins = state::part_begins(tensors, part);
    CHECK(begins.empty() == (end <= part));
    Begins ends = begins;
    ends.push_back(end);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::uint64_t begin = i == 0 ? 0 : begins[i - 1];
      REQUIRE(ends[i] > begin);
      REQUIRE(ends[i] - begin <= part);
    }
    for (const state::Extent& tensor : tensors) {
      const std::uint64_t bytes = tensor.end - tensor.first;
      if (bytes <= part) REQUIRE(in_one_part(begins, tensor.first, bytes));
      for (const std::uint64_t begin : begins) {
        if (begin > tensor.first && begin < tensor.end) REQUIRE((begin - tensor.first) % tensor.block == 0);
      }
      if (bytes <= part || !std::has_single_bit(tensor.block)) continue;
      ++larger;
      for (std::uint64_t window = tensor.block; window <= part; window *= 2) {
        for (std::uint64_t done = 0; done < bytes; done += window) {
          REQUIRE(in_one_part(begins, tensor.first + done, std::min(window, bytes - done)));
        }
      }
    }
  }
  CHECK(larger > 100);
  CHECK(state::part_begins({{0, 1 << 20, 256}}, 0).empty());
}

TEST_CASE("no dispatch of a step binds a range of the store that lies in two parts") {
  Precision scaled = Precision::mixed();
  scaled.gradient_scales = GradientScales::per_tensor;
  Precision narrow = Precision::float16();
  narrow.moments = DType::f16;
  std::set<std::string> seen;
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), scaled, narrow}) {
    for (const auto& [part, range] :
         {std::pair{8192, 1 << 27}, std::pair{8192, 8192}, std::pair{8192, 5000}, std::pair{4096, 1 << 20}}) {
      for (const int ranks : {1, 2, 3}) {
        Model model(precision);
        TrainerOptions& options = model.options;
        if (ranks > 1) options.ranks = Ranks(std::make_shared<testing::RankOf>(ranks - 2, ranks));
        options.ranks.shard_state = ranks > 1;
        options.ranks.bucket_bytes = 30000;
        if (ranks == 1) options.ema_decay = 0.9F;
        const plan::Target target = target_of(static_cast<std::uint64_t>(part), static_cast<std::uint64_t>(range));
        const step::StepGraph graph = train::training_graph(model.graph, options);
        state::StoreLayout layout = step::layout_of(graph);
        const state::WeightStorage weights = state::weight_storage(precision);
        if (ranks > 1) layout.shard.emplace(layout.parameters, weights, options.ranks);
        const step::Share share{.count = 2, .all = 2 * static_cast<std::uint32_t>(ranks)};
        const state::Parts parts(layout, weights, target.part_bytes);
        check_program(step::training_program(target, graph, layout, options, share).plan.program, parts, seen);
        if (ranks > 1) continue;
        const step::StepGraph evaluated = train::evaluation_graph(model.graph, options);
        const auto evaluation =
            step::evaluation_program(target, evaluated, layout, precision, Weights::averaged).plan.program;
        check_program(evaluation, parts, seen);
      }
    }
  }
  for (const char* const name :
       {"weights", "masters", "gradients", "gradient sums", "moments", "averages", "averaged weights"}) {
    CAPTURE(std::string(name));
    CHECK(seen.contains(name));
  }
}

TEST_CASE("a store that fits the largest buffer is one buffer each, and its dispatches stay as they are") {
  const auto dispatches = [](std::uint64_t part_bytes) {
    const Model model(Precision::mixed());
    const step::StepGraph graph = train::training_graph(model.graph, model.options);
    return step::training_program(target_of(part_bytes, 1 << 27), graph, step::layout_of(graph), model.options,
                                  {.count = 2, .all = 2})
        .plan.text();
  };
  CHECK(dispatches(1 << 22) == dispatches(0));
  CHECK(dispatches(1 << 14) != dispatches(0));
}

}  // namespace halfstep
