// Fits y = 2 x - 1 with the installed library, and checks the result.
#include <halfstep/halfstep.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "models/layers.h"

using namespace halfstep;

int main() {
  static_assert(HALFSTEP_VERSION >= HALFSTEP_MAKE_VERSION(0, 1, 0));
  // An exception from the library is caught by its type, even if the library is shared.
  try {
    Graph().input("x", {-1});
    return 1;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_argument) return 1;
  }
  Graph graph;
  const Tensor x = graph.input("x", {4, 1});
  const Tensor y = graph.input("y", {4, 1});
  const Tensor loss = mse_loss(models::dense(graph.root() / "line", x, 1), y);
  Trainer trainer = Trainer::compile(Device::open({}, {.may_fork = false}), graph,
                                     {.loss = loss, .optimizer = Sgd{.rate = 0.1F}, .precision = Precision::float32()});
  const float xs[] = {-1, 0, 1, 2};
  const float ys[] = {-3, -1, 1, 3};
  for (int step = 0; step < 300; step++) trainer.step({{"x", std::span(xs)}, {"y", std::span(ys)}});
  trainer.finish();
  const float slope = trainer.parameter("line/weight").at(0);
  const float offset = trainer.parameter("line/bias").at(0);
  std::printf("y = %.3f x %+.3f\n", static_cast<double>(slope), static_cast<double>(offset));
  std::printf("Halfstep %s\n", std::string(version()).c_str());
  return std::abs(slope - 2) < 0.01F && std::abs(offset + 1) < 0.01F ? 0 : 1;
}
