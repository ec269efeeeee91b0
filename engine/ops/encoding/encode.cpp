#include <halfstep/encodings.h>
#include <halfstep/error.h>

#include <fmt/format.h>

#include <string>
#include <utility>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep {
namespace {

using plan::Access;

/// Features of f32 coordinates {n, d}: {n, columns}. The name is that of a file in shaders/encoding.
struct Encoding {
  std::string name;
  std::string count_name;    ///< what `count` counts
  std::int64_t count = 0;    ///< of features, in the encoding's own terms
  std::int64_t columns = 0;  ///< of a row of features
  std::int64_t rounds = 0;   ///< loop rounds for one of them
};

std::vector<std::uint32_t> constants_of(const Encoding& encoding) {
  return {static_cast<std::uint32_t>(encoding.count), static_cast<std::uint32_t>(encoding.columns)};
}

/// The gradient {n, d} of coordinates, from coordinates and the gradient {n, columns} of their features.
class EncodingGradient final : public graph::Operator {
 public:
  explicit EncodingGradient(Encoding encoding) : encoding_(std::move(encoding)) {}

  std::string name() const override { return encoding_.name + "_gradient"; }
  graph::Attributes attributes() const override { return {{encoding_.count_name, encoding_.count}}; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    return {inputs[0]};
  }

  void lower(plan::Lowering& out) const override {
    const std::int64_t rows = out.input_type(0).shape[0];
    ops::dispatch_flat(out, "encode_gradient." + encoding_.name, rows, ops::index32(out, rows),
                       {{out.input(0), Access::read}, {out.input(1), Access::read}, {out.output(0), Access::write}},
                       constants_of(encoding_), {.rounds = encoding_.columns * (encoding_.rounds + 1) + 1});
  }

 private:
  Encoding encoding_;
};

class Encode final : public graph::Operator {
 public:
  explicit Encode(Encoding encoding) : encoding_(std::move(encoding)) {}

  std::string name() const override { return encoding_.name; }
  graph::Attributes attributes() const override { return {{encoding_.count_name, encoding_.count}}; }
  graph::Numerics numerics() const override { return graph::Numerics::as_is; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 1);
    if (inputs[0].dtype != DType::f32) {
      fail(name(), fmt::format("expected coordinates f32, got {}", to_string(inputs[0])),
           "f16 rounds coordinates to a coarse grid");
    }
    return {{DType::f32, {inputs[0].shape[0], encoding_.columns}}};
  }

  // dx = for each coordinate, the sum of dy * slope over its features
  graph::Gradients vjp(const graph::Vjp& call) const override {
    return {ops::apply<EncodingGradient>({call.inputs[0], *call.cotangents[0]}, encoding_)};
  }

  void lower(plan::Lowering& out) const override {
    const TensorType& type = out.type(out.output(0));
    const std::int64_t quads = plan::layout(type.shape).quads();
    ops::index32(out, 4 * quads);
    std::vector<std::uint32_t> constants = constants_of(encoding_);
    constants.insert(constants.begin(), flat_local_size(out.target()));
    out.dispatch({.label = {},
                  .shader = ops::variant(out, "encode." + encoding_.name, type.dtype),
                  .constants = std::move(constants),
                  .push = plan::push_bytes(ops::index32(out, type.shape[0])),
                  .operands = {{out.input(0), Access::read}, {out.output(0), Access::write}},
                  .groups = plan::groups_for(out.target(), quads, flat_local_size(out.target())),
                  .rounds = 4 * encoding_.rounds,
                  .expression = ops::result_expression(out, out.output(0), 1, 2),
                  .mixes = true});
  }

 private:
  Encoding encoding_;
};

/// Throws Error unless `x` is {n, d} with d from 1 to 4, and `count` from 1 to `most`.
void check(const std::string& op, Tensor x, const char* what, std::int64_t count, std::int64_t most) {
  ops::expect_rank(op, "coordinates", x.type(), 2, "{n, d}");
  if (x.dim(1) < 1 || x.dim(1) > 4) fail(op, fmt::format("expected 1 to 4 coordinates, got {}", x.dim(1)));
  if (count < 1 || count > most) fail(op, fmt::format("expected 1 to {} {}, got {}", most, what, count));
}

}  // namespace

Tensor frequency_encoding(Tensor coordinates, std::int64_t octaves) {
  check("frequency", coordinates, "octaves", octaves, 24);
  return ops::apply<Encode>({coordinates}, Encoding{"frequency", "octaves", octaves, coordinates.dim(1) * 2 * octaves});
}

Tensor one_blob_encoding(Tensor coordinates, std::int64_t bins) {
  check("one_blob", coordinates, "bins", bins, 256);
  return ops::apply<Encode>({coordinates}, Encoding{"one_blob", "bins", bins, coordinates.dim(1) * bins});
}

Tensor spherical_harmonics(Tensor directions, std::int64_t degrees) {
  check("spherical_harmonics", directions, "degrees", degrees, 8);
  if (directions.dim(1) != 3) {
    fail("spherical_harmonics", fmt::format("expected directions {{n, 3}}, got {}", to_string(directions.type())));
  }
  return ops::apply<Encode>({directions},
                            Encoding{"spherical_harmonics", "degrees", degrees, degrees * degrees, 3 * degrees + 3});
}

}  // namespace halfstep
