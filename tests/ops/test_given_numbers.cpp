// An application's own kernel that is given subnormal numbers, in a reproducible program.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <given_numbers.spirv.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/device.h"

using namespace halfstep;

namespace {

constexpr float factor = 0x1p100F;
constexpr std::uint32_t rows = 2;

/// Of x {2, 8}: its numbers and four others, times the factor.
class Given final : public CustomOperator {
 public:
  explicit Given(float number) : number_(number) {}

  std::string name() const override { return "given"; }
  std::vector<CustomAttribute> attributes() const override { return {{"number", number_}}; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override {
    return {{inputs[0].dtype, {rows, 12}}};
  }
  CustomKernels kernels(const CustomTypes&) const override {
    struct Push {
      std::uint32_t count;
      float pushed;
      float factor;
    };
    return {.dispatches = {{.shader = "given_numbers",
                            .spirv = halfstep_kernels::given_numbers(),
                            .operands = {reads_input(0), writes_output(0)},
                            .constants = {std::bit_cast<std::uint32_t>(number_)},
                            .push = push_constants(Push{rows, number_, factor}),
                            .invocations = rows}}};
  }

 private:
  float number_;
};

/// What is not above 2^-126 is 0.
float flushed(float v) {
  return std::abs(v) <= 0x1p-126F ? std::copysign(0.0F, v) : v;
}

}  // namespace

TEST_CASE(
    "subnormal numbers count as 0 in an application's kernel, however they are given, if bits are to be the same") {
  const std::vector<float> values{1e-39F, -1e-39F, 3e-45F,    0x1p-126F, -0x1p-126F, 0x1.fp-127F, 1e-40F,     -1e-40F,
                                  1,      -2.5F,   0x1p-125F, 1e-39F,    -3e-20F,    1e-39F,      -0x1p-125F, 7};
  Precision precision = Precision::float32();
  precision.reproducible = true;
  for (const float number : {1e-39F, -1e-39F, 0x1.8p-120F}) {
    CAPTURE(number);
    Graph graph;
    const Tensor x = graph.input("x", {rows, 8});
    const Tensor y = apply_operator(std::make_shared<Given>(number), std::span(&x, 1))[0];
    Predictor predictor = Predictor::compile(testing::device(), graph, y, precision);
    const std::vector<float> got = predictor.run({{"x", std::span(values)}});
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      const float others[] = {flushed(number), flushed(number), 0, 1};
      const float wanted = i % 12 < 8 ? flushed(values[i / 12 * 8 + i % 12]) : others[i % 12 - 8];
      CHECK(std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(wanted * factor));
    }
  }
}
