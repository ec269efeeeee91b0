#include <halfstep/ops.h>
#include <halfstep/pattern.h>

#include <algorithm>
#include <cmath>

#include "optim/check.h"
#include "optim/rule.h"

namespace halfstep {
namespace {

/// Coefficients of the Newton-Schulz iteration x <- a x + b x^3 + c x^5, applied to the singular values: Jordan et al.
/// 2024. They are chosen for a steep rise at 0. The iteration does not converge to 1, but ends between 0.68 and 1.21.
constexpr float a = 3.4445F;
constexpr float b = -4.7750F;
constexpr float c = 2.0315F;
constexpr int iterations = 5;

/// Keeps the quotient finite for a matrix of zeros.
constexpr float least_norm = 1e-7F;

/// x {rows, columns} with singular values up to 1, each moved towards 1. The Gram matrix is formed on the side of the
/// smaller extent.
Tensor iterated(Tensor x) {
  const bool tall = x.dim(0) > x.dim(1);
  const Tensor gram = matmul(x, x, {.transpose_a = tall, .transpose_b = !tall});
  const Tensor factor = add(scale(gram, b), scale(matmul(gram, gram), c));
  return add(scale(x, a), tall ? matmul(x, factor) : matmul(factor, x));
}

/// About U V^T of the singular value decomposition U S V^T of u {..., columns}, as a matrix. The Frobenius norm, by
/// which u is divided first, is at least the largest singular value; then f16 can hold the products too.
Tensor orthogonalised(Tensor u, DType products) {
  const Tensor norm = sqrt(sum(mul(u, u)));
  Tensor x = reshape(div(u, offset(norm, least_norm)), {-1, u.dim(-1)});
  if (products != DType::f32) x = cast(x, products);
  for (int i = 0; i < iterations; ++i) x = iterated(x);
  if (products != DType::f32) x = cast(x, DType::f32);
  return reshape(x, u.shape());
}

class MuonRule final : public optim::RuleOf<Muon> {
 public:
  explicit MuonRule(const Muon& muon)
      : RuleOf(muon), others_(muon.others.value_or(AdamW{.rate = muon.rate, .weight_decay = muon.weight_decay})) {}

  std::string name() const override { return "muon"; }

  void check() const override {
    const Muon& muon = numbers();
    optim::require(muon.momentum >= 0 && muon.momentum < 1, "momentum", "in [0, 1)", muon.momentum);
    if (!is_floating(muon.products)) {
      fail("optimizer", fmt::format("expected products of a floating type, got {}", halfstep::name(muon.products)));
    }
    optim::check(*others_);
  }

  std::vector<std::string> states() const override { return {"momentum"}; }

  const Optimizer* substitute(std::string_view parameter, const Shape& shape) const override {
    const auto names = [&](const std::string& pattern) { return matches(pattern, parameter); };
    const bool others = shape.size() < 2 || std::ranges::any_of(numbers().others_patterns, names);
    return others ? &others_ : nullptr;
  }

  bool in_operators() const override { return true; }

  UpdateResult update(const UpdateTensors& now) const override {
    const Muon& muon = numbers();
    const auto average = [&](Tensor with) {
      return add(scale(with, muon.momentum), scale(now.gradient, 1 - muon.momentum));
    };
    const Tensor momentum = average(now.states[0]);
    const Tensor direction = orthogonalised(muon.nesterov ? average(momentum) : momentum, muon.products);
    const std::int64_t columns = direction.dim(-1);
    const std::int64_t larger = std::max(columns, elements(direction.shape()) / columns);
    return {.direction = scale(direction, 0.2F * std::sqrt(static_cast<float>(larger))), .states = {momentum}};
  }

  std::vector<NamedNumber> small_numbers() const override {
    return {{"1 - momentum", 1 - static_cast<double>(numbers().momentum)}};
  }

 private:
  Optimizer others_;
};

}  // namespace

Muon::operator Optimizer() const {
  return optim::make<MuonRule>(*this);
}

}  // namespace halfstep
