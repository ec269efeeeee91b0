// What an application adds to a checkpoint's metadata.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "harness/device.h"
#include "train/checkpoint_contents.h"
#include "train/small_training.h"

namespace halfstep {

TEST_CASE("notes have no name that any trainer writes, and all of these are known") {
  const std::string names[] = {"applied",
                               "average_decay",
                               "batch",
                               "classes",
                               "deviation",
                               "epoch",
                               "epoch_step",
                               "format",
                               "input",
                               "loss_scale",
                               "loss_scale_dynamic",
                               "loss_scale_in_rate",
                               "mean",
                               "model",
                               "optimizer",
                               "precision",
                               "ranks",
                               "samples",
                               "seed",
                               "source_batches",
                               "step",
                               "version"};
  Graph graph;
  const Tensor w = graph.root().parameter("w", {4}, constant(1));
  Trainer plain = Trainer::compile(testing::device(), graph, {.loss = mean(mul(graph.input("x", {4}), w))});
  for (const std::string& name : names) {
    CHECK_THROWS_WITH_AS(plain.checkpoint({{name, "5"}}), doctest::Contains(("got '" + name + "'").c_str()), Error);
  }
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {.change = [](TrainerOptions& options) {
                                           options.model = "toy";
                                           options.classes = {"a", "b", "c"};
                                         }});
  const Checkpoint taken = trainer.checkpoint({{"colour", "blue"}});
  for (const auto& [key, text] : taken.contents().metadata) {
    CAPTURE(key);
    CHECK((key == "colour" || std::ranges::find(names, key) != std::end(names)));
  }
  CHECK(taken.contents().metadata.contains("epoch_step"));
  CHECK(taken.contents().metadata.contains("classes"));
}

}  // namespace halfstep
