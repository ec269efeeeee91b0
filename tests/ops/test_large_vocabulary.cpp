// The table of a large language model's vocabulary, as embedding and as the last product, beyond 65,535 and 131,072
// rows.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "reference/array.h"

namespace halfstep {
namespace {

using reference::Array;

constexpr std::int64_t vocabulary = 151936;
constexpr std::size_t texts = 6;

/// Tokens that are alike, so that each has a probability that counts wherever another is the label.
const std::vector<double> tokens{3, 65535, 65536, 131072, 140000, 151935};
const std::vector<double> labels{65536, 131072, 151935, 3, 140000, 65535};

Array table(std::int64_t width) {
  Array values = testing::uniform({vocabulary, width}, 1, -0.05, 0.05);
  const double most = 2.4 / std::sqrt(static_cast<double>(width));
  const Array common = testing::uniform({width}, 2, -most, most);
  for (const double token : tokens) {
    for (std::int64_t c = 0; c < width; ++c) {
      double& value = values.values[static_cast<std::size_t>(static_cast<std::int64_t>(token) * width + c)];
      value += 3 * common.values[static_cast<std::size_t>(c)];
    }
  }
  return values;
}

std::size_t width_of(const Array& x) {
  return static_cast<std::size_t>(x.shape.back());
}

const double* row(const Array& x, double token) {
  return &x.values[static_cast<std::size_t>(token) * width_of(x)];
}

/// The probabilities of all tokens after each of `tokens`, and the mean loss.
double probabilities(const Array& x, std::vector<std::vector<double>>& result) {
  double loss = 0;
  for (std::size_t i = 0; i < texts; ++i) {
    std::vector<double> p(static_cast<std::size_t>(vocabulary));
    for (std::size_t j = 0; j < p.size(); ++j) {
      for (std::size_t c = 0; c < width_of(x); ++c) p[j] += row(x, tokens[i])[c] * row(x, static_cast<double>(j))[c];
    }
    const double top = *std::ranges::max_element(p);
    const double logit = p[static_cast<std::size_t>(labels[i])];
    double total = 0;
    for (double& each : p) total += each = std::exp(each - top);
    for (double& each : p) each /= total;
    loss += (std::log(total) + top - logit) / static_cast<double>(texts);
    result.push_back(std::move(p));
  }
  return loss;
}

/// d table, from the embedding and from the last product.
Array gradient(const Array& x, double dloss) {
  std::vector<std::vector<double>> p;
  probabilities(x, p);
  Array result(x.shape);
  const std::size_t width = width_of(x);
  for (std::size_t i = 0; i < texts; ++i) {
    double* const own = &result.values[static_cast<std::size_t>(tokens[i]) * width];
    for (std::size_t j = 0; j < p[i].size(); ++j) {
      const double is_label = static_cast<double>(j) == labels[i] ? 1 : 0;
      const double dlogit = (p[i][j] - is_label) * dloss / static_cast<double>(texts);
      for (std::size_t c = 0; c < width; ++c) {
        result.values[j * width + c] += dlogit * row(x, tokens[i])[c];
        own[c] += dlogit * row(x, static_cast<double>(j))[c];
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("a table of 151,936 tokens, as embedding and last product, and its gradient") {
  testing::Check check;
  check.name = "large vocabulary";
  check.inputs = {
      {table(64)}, {Array({texts}, tokens), testing::Kind::labels}, {Array({texts}, labels), testing::Kind::labels}};
  check.build = [](std::span<const Tensor> x) {
    return cross_entropy(matmul(embedding(x[0], x[1]), x[0], {.transpose_b = true}), x[2]);
  };
  check.reference = [](std::span<const Array> x) {
    std::vector<std::vector<double>> p;
    return Array({}, {probabilities(x[0], p)});
  };
  check.gradients = [](std::span<const Array> x, const Array& dy) {
    return std::vector{gradient(x[0], dy.values.front())};
  };
  check.arithmetic = 4e-5;  // sums of 64 products, 17 in all, are rounded to 3e-5
  check.dtypes = {DType::f32};
  testing::check_operator(check);
  testing::check_gradient(check);
  check.arithmetic = 1.6e-2;  // those are stored to 1/128: their differences to 1/64
  check.dtypes = {DType::f16};
  testing::check_operator(check);
  testing::check_gradient(check);
}

TEST_CASE("a table of 151,936 tokens that takes 156 MB trains for a step, whatever one binding may take") {
  const Array values = table(256);
  const Array gradients = gradient(values, 1);
  double largest = 0;
  for (const double g : gradients.values) largest = std::max(largest, std::abs(g));
  const Device device = Device::open({}, {.limits = "storage_range=100000000"});
  Graph graph;
  const Tensor own = graph.root().parameter("table", values.shape, constant(0));
  const Tensor of = graph.input("tokens", {texts}, DType::u32);
  const Tensor next = graph.input("labels", {texts}, DType::u32);
  const Tensor loss = cross_entropy(matmul(embedding(own, of), own, {.transpose_b = true}), next);
  for (const Device& each : {testing::device(), device}) {
    Trainer trainer =
        Trainer::compile(each, graph, {.loss = loss, .optimizer = Sgd{.rate = 1}, .precision = Precision::float32()});
    trainer.set_parameter("table", std::vector<float>(values.values.begin(), values.values.end()));
    const std::vector<std::uint32_t> fed(tokens.begin(), tokens.end());
    const std::vector<std::uint32_t> wanted(labels.begin(), labels.end());
    trainer.step({{"tokens", std::span(fed)}, {"labels", std::span(wanted)}});
    trainer.finish();
    std::vector<std::vector<double>> p;
    CHECK(trainer.report().loss == doctest::Approx(probabilities(values, p)).epsilon(1e-5));
    const std::vector<float> trained = trainer.parameter("table");
    double furthest = 0;
    for (std::size_t i = 0; i < trained.size(); ++i) {
      furthest = std::max(furthest, std::abs(values.values[i] - gradients.values[i] - double{trained[i]}));
    }
    CHECK(largest > 0.01);
    CHECK(furthest < 4e-5 * largest);
  }
}

}  // namespace halfstep
