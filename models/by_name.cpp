#include "models/by_name.h"

#include <halfstep/error.h>

#include <charconv>
#include <string_view>

#include "models/fashion_cnn.h"
#include "models/fashion_conv.h"
#include "models/lenet5.h"
#include "models/mobilenet_v2.h"
#include "models/resnet.h"
#include "models/resnet_cifar.h"

namespace halfstep::models {
namespace {

/// The depth in "resnet20"; 0 if there is none.
std::int64_t depth_in(std::string_view name) {
  constexpr std::string_view start = "resnet";
  if (!name.starts_with(start)) return 0;
  const std::string_view digits = name.substr(start.size());
  std::int64_t depth = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), depth);
  return error == std::errc() && end == digits.data() + digits.size() ? depth : 0;
}

}  // namespace

Tensor image_model(const Scope& scope, Tensor images, const std::string& name, std::int64_t classes) {
  const Stem stem = images.dim(1) <= 32 ? Stem::small : Stem::large;
  const std::int64_t depth = depth_in(name);
  if (name == "lenet5") return lenet5(scope, images, classes);
  if (name == "fashion_conv") return fashion_conv(scope, images, classes);
  if (name == "fashion_cnn") return fashion_cnn(scope, images, classes);
  if (name == "mobilenet_v2") return mobilenet_v2(scope, images, classes, {.stem = stem});
  if (depth == 18 || depth == 34 || depth == 50) return resnet(scope, images, depth, classes, stem);
  if (depth >= 8 && depth % 6 == 2) return resnet_cifar(scope, images, depth, classes);
  fail("model",
       "expected lenet5, fashion_conv, fashion_cnn, resnet8, resnet14, ... resnet56, resnet18, resnet34, "
       "resnet50 or mobilenet_v2, got '" +
           name + "'");
}

}  // namespace halfstep::models
