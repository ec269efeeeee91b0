#include "state/gradient_scales.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace halfstep::state::gradient_scales {

bool is_scale(float scale) {
  int exponent = 0;
  return scale >= 0x1p-24F && scale <= 0x1p24F && std::frexp(scale, &exponent) == 0.5F;
}

void check_count(const ParameterLayout& layout) {
  const std::size_t count = tensors(layout).size();
  if (count <= most_tensors) return;
  fail("precision",
       fmt::format("expected at most {} tensors to train with scales of gradients, got {}", most_tensors, count));
}

std::vector<Tensor> tensors(const ParameterLayout& layout) {
  std::vector<Tensor> result;
  std::uint64_t end = layout.trained_elements();
  for (auto slot = layout.slots().rbegin(); slot != layout.slots().rend(); ++slot) {
    if (slot->training.frozen) continue;
    result.push_back({static_cast<std::uint32_t>(slot->first_element / block_elements),
                      static_cast<std::uint32_t>((end - slot->first_element) / block_elements)});
    end = slot->first_element;
  }
  std::ranges::reverse(result);
  return result;
}

std::int64_t most_blocks(const ParameterLayout& layout) {
  std::int64_t most = 0;
  for (const Tensor& tensor : tensors(layout)) most = std::max(most, std::int64_t{tensor.blocks});
  return most;
}

}  // namespace halfstep::state::gradient_scales
