#include "bench/models.h"

#include "models/fashion_cnn.h"
#include "models/fashion_conv.h"
#include "models/lenet5.h"
#include "models/mlp.h"
#include "models/resnet_cifar.h"

namespace bench {
namespace {

using namespace halfstep;

constexpr std::int64_t hidden_units = 128;

Tensor mlp(const Scope& scope, Tensor images, std::int64_t layers) {
  const std::vector<std::int64_t> hidden(static_cast<std::size_t>(layers - 1), hidden_units);
  return halfstep::models::mlp(scope, images, hidden);
}

Tensor fashion_cnn(const Scope& scope, Tensor images, std::int64_t /*layers*/) {
  return halfstep::models::fashion_cnn(scope, images);
}

Tensor fashion_conv(const Scope& scope, Tensor images, std::int64_t /*layers*/) {
  return halfstep::models::fashion_conv(scope, images);
}

Tensor lenet5(const Scope& scope, Tensor images, std::int64_t /*layers*/) {
  return halfstep::models::lenet5(scope, images);
}

template <std::int64_t depth>
Tensor resnet(const Scope& scope, Tensor images, std::int64_t /*layers*/) {
  return halfstep::models::resnet_cifar(scope, images, depth);
}

}  // namespace

const std::map<std::string, Model>& models() {
  const Shape colour{32, 32, 3};
  static const std::map<std::string, Model> all{
      {"fashion_cnn", {.logits = fashion_cnn}}, {"fashion_conv", {.logits = fashion_conv}},
      {"lenet5", {.logits = lenet5}},           {"mlp", {.logits = mlp}},
      {"resnet8", {colour, resnet<8>}},         {"resnet20", {colour, resnet<20>}}};
  return all;
}

}  // namespace bench
