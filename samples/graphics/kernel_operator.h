#pragma once

#include <halfstep/halfstep.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace samples {

/// An operator that is one dispatch of a kernel of the sample's own, without a gradient. The kernel binds the inputs,
/// then the outputs, and has the push constants `uint count`, the number of invocations, and then `words`.
struct Kernel {
  std::string name;
  std::map<std::string, std::vector<std::uint32_t>> spirv;
  std::vector<halfstep::Shape> outputs;  ///< all f32
  std::int64_t count = 0;
  std::vector<std::uint32_t> words{};
  std::int64_t rounds = 0;  ///< see halfstep::CustomDispatch
  double flops = 0;         ///< of one invocation
};

std::vector<halfstep::Tensor> apply(const Kernel& kernel, const std::vector<halfstep::Tensor>& inputs);

}  // namespace samples
