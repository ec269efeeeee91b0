#include "models/by_name.h"

#include <halfstep/error.h>

#include <charconv>
#include <string>
#include <string_view>

#include "models/fashion_cnn.h"
#include "models/fashion_conv.h"
#include "models/lenet5.h"
#include "models/mobilenet_v2.h"
#include "models/resnet.h"
#include "models/resnet_cifar.h"

namespace halfstep::models {
namespace {

/// The depth in "resnet20", where names start with "resnet"; 0 if there is none.
std::int64_t depth_in(std::string_view name, std::string_view start) {
  if (!name.starts_with(start)) return 0;
  const std::string_view digits = name.substr(start.size());
  std::int64_t depth = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), depth);
  return error == std::errc() && end == digits.data() + digits.size() ? depth : 0;
}

/// Whether "resnet" and this depth name a network for large images.
bool is_large(std::int64_t depth) {
  return depth == 18 || depth == 34 || depth == 50;
}

}  // namespace

Tensor image_model(const Scope& scope, Tensor images, const std::string& name, std::int64_t classes) {
  const Stem stem = images.dim(1) <= 32 ? Stem::small : Stem::large;
  const std::int64_t depth = depth_in(name, "resnet");
  if (name == "lenet5") return lenet5(scope, images, classes);
  if (name == "fashion_conv") return fashion_conv(scope, images, classes);
  if (name == "fashion_cnn") return fashion_cnn(scope, images, classes);
  if (name == "mobilenet_v2") return mobilenet_v2(scope, images, classes, {.stem = stem});
  if (is_large(depth)) return resnet(scope, images, depth, classes, stem);
  const std::int64_t small = depth == 0 ? depth_in(name, "resnet_cifar") : depth;
  if (small >= 8 && small % 6 == 2) return resnet_cifar(scope, images, small, classes);
  fail("model",
       "expected lenet5, fashion_conv, fashion_cnn, resnet8, resnet14, ... resnet56, resnet_cifar50, resnet18, "
       "resnet34, resnet50 or mobilenet_v2, got '" +
           name + "'");
}

std::string resnet_cifar_name(std::int64_t depth) {
  return (is_large(depth) ? "resnet_cifar" : "resnet") + std::to_string(depth);
}

}  // namespace halfstep::models
