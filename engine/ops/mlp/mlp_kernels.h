#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/mlp/mlp_form.h"
#include "plan/lowering.h"

/// The ways to compute a network, and which to prefer.
namespace halfstep::ops {

enum class MlpPass : std::uint8_t {
  prediction,
  forward,   ///< as prediction, and what the gradients need is kept
  backward,  ///< the gradients for what comes before the activation of hidden layers, and for x
};

/// A kernel of shaders/mlp/mlp_tile.glsl.
struct MlpTile {
  bool units = false;      ///< by matrix units
  std::int64_t quads = 0;  ///< of a hidden layer's row in shared memory
  std::int64_t rows = 0;   ///< of a workgroup
  std::uint32_t local_size = 0;
  std::int64_t rounds = 0;                    ///< loop rounds of an invocation
  std::vector<std::uint32_t> constants = {};  ///< specialization constants from 22 on
};

struct MlpKernel {
  std::string name;                  ///< "layers", "rows", "tile", "units16x16x16"
  std::optional<MlpTile> tile = {};  ///< of the latter two
  bool risky() const { return tile && tile->units; }
};

/// The ways to consider for a pass of an operator whose first inputs are those of a network, the one expected to be
/// fastest first; never empty. If Target::mlp_kernel names one that there is, only that.
std::vector<MlpKernel> mlp_kernels(const plan::Lowering& out, MlpPass pass, const MlpForm& form);

}  // namespace halfstep::ops
