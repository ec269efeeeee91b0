#pragma once

#include <halfstep/graph.h>

#include <cstdint>
#include <string>

namespace halfstep::models {

/// A model by its name in checkpoints, on `images` {n, h, w, c}: lenet5, fashion_conv, fashion_cnn, resnet8 to resnet56
/// and deeper (6N + 2; that of 50 is resnet_cifar50), resnet18, resnet34, resnet50 or mobilenet_v2; the last four have
/// the small stem for images of 32. Returns logits {n, classes}. Throws Error for any other name, and as the model
/// does.
HALFSTEP_API Tensor image_model(const Scope& scope, Tensor images, const std::string& name, std::int64_t classes);

/// The name of resnet_cifar() of this depth.
HALFSTEP_API std::string resnet_cifar_name(std::int64_t depth);

}  // namespace halfstep::models
