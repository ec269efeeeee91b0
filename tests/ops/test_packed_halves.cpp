// An application's own kernel that packs numbers to f16, in a reproducible program.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <packs_halves.spirv.h>

#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/dtype.h"
#include "harness/device.h"

using namespace halfstep;

namespace {

/// The bits that x {16} has in f16, as numbers.
class Packed final : public CustomOperator {
 public:
  std::string name() const override { return "packed"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  CustomKernels kernels(const CustomTypes&) const override {
    return {.dispatches = {{.shader = "packs_halves",
                            .spirv = halfstep_kernels::packs_halves(),
                            .operands = {reads_input(0), writes_output(0)},
                            .push = push_constants(4U),
                            .invocations = 4}}};
  }
};

}  // namespace

TEST_CASE("numbers that an application's kernel packs to f16 have the same bits on every device if asked to") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{
      1,        -2.5F,    0.1F,       -0.0F,       65519.99F,    65520,        -infinity, std::nanf(""),
      0x1p-24F, 0x1p-25F, 0x1.8p-25F, -0x1.8p-24F, 0x1.ffep-15F, 0x1.fffp-15F, 1e30F,     3e-39F};
  Graph graph;
  const Tensor x = graph.input("x", {16});
  const Tensor y = apply_operator(std::make_shared<Packed>(), std::span(&x, 1))[0];
  Precision precision = Precision::float32();
  precision.reproducible = true;
  Predictor predictor = Predictor::compile(testing::device(), graph, y, precision);
  const std::vector<float> got = predictor.run({{"x", std::span(values)}});
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(values[i]);
    CHECK(got[i] == static_cast<float>(graph::info(DType::f16).narrow->bits_of(values[i])));
  }
}
