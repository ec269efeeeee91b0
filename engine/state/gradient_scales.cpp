#include "state/gradient_scales.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "vk/command/transfer.h"

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
  for (auto entry = layout.entries().rbegin(); entry != layout.entries().rend(); ++entry) {
    if (entry->training.frozen) continue;
    result.push_back({static_cast<std::uint32_t>(entry->first_element / block_elements),
                      static_cast<std::uint32_t>((end - entry->first_element) / block_elements)});
    end = entry->first_element;
  }
  std::ranges::reverse(result);
  return result;
}

std::int64_t most_blocks(const ParameterLayout& layout) {
  std::int64_t most = 0;
  for (const Tensor& tensor : tensors(layout)) most = std::max(most, std::int64_t{tensor.blocks});
  return most;
}

std::vector<float> read(vk::Context& context, const vk::Buffer& buffer, const ParameterLayout& layout) {
  std::vector<float> table(table_bytes / 4);
  vk::download(context, buffer, 0, std::as_writable_bytes(std::span(table)));
  std::vector<float> scales(layout.entries().size(), 1.0F);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const ParameterEntry& entry = layout.entries()[i];
    if (!entry.training.frozen) scales[entry.index] = table[i + 1];
  }
  return scales;
}

void write(vk::Context& context, const vk::Buffer& buffer, const ParameterLayout& layout,
           std::span<const float> scales) {
  const std::vector<Tensor> all = tensors(layout);
  std::vector<float> table{1};
  for (std::size_t i = 0; i < all.size(); ++i) table.push_back(scales[layout.entries()[i].index]);
  vk::upload(context, buffer, 0, std::as_bytes(std::span(table)));
  vk::upload(context, buffer, tensors_offset, std::as_bytes(std::span(all)));
}

float unscale(vk::Context& context, const vk::Buffer& buffer, std::uint64_t element) {
  Block block;
  vk::download(context, buffer, blocks_offset + element / block_elements * sizeof block,
               std::as_writable_bytes(std::span(&block, 1)));
  return block.unscale;
}

}  // namespace halfstep::state::gradient_scales
