#include "vk/shader/specialize.h"

#include <fmt/format.h>
#include <spirv-tools/optimizer.hpp>

#include <cstddef>
#include <cstring>
#include <exception>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "vk/device/notes.h"
#include "vk/shader/sealed_file.h"

namespace halfstep::vk {
namespace {

using Kernels = std::map<std::string, std::vector<std::uint32_t>>;

std::string key_of(const EmbeddedShader& shader, const Constants& constants) {
  std::string key(shader.name);
  for (const auto& [id, value] : constants) fmt::format_to(std::back_inserter(key), " {}:{}", id, value);
  return key;
}

/// Serializes each kernel as the size of its key, the size of its code, and both.
std::vector<std::byte> written(const Kernels& kernels) {
  std::vector<std::byte> data;
  const auto append = [&data](std::span<const std::byte> bytes) {
    data.insert(data.end(), bytes.begin(), bytes.end());
  };
  for (const auto& [key, words] : kernels) {
    const std::uint32_t sizes[] = {static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(words.size())};
    append(std::as_bytes(std::span(sizes)));
    append(std::as_bytes(std::span(key)));
    append(std::as_bytes(std::span(words)));
  }
  return data;
}

Kernels read(std::span<const std::byte> data) {
  Kernels kernels;
  std::uint32_t sizes[2];
  while (data.size() >= sizeof sizes) {
    std::memcpy(sizes, data.data(), sizeof sizes);
    data = data.subspan(sizeof sizes);
    if (data.size() < sizes[0] + std::size_t{4} * sizes[1]) return {};
    std::string key(reinterpret_cast<const char*>(data.data()), sizes[0]);
    std::vector<std::uint32_t> words(sizes[1]);
    std::memcpy(words.data(), data.data() + sizes[0], 4 * words.size());
    data = data.subspan(sizes[0] + 4 * words.size());
    kernels.emplace(std::move(key), std::move(words));
  }
  return kernels;
}

}  // namespace

std::vector<std::uint32_t> specialized(std::span<const std::uint32_t> words, const Constants& constants) {
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> values;
  for (const auto& [id, value] : constants) values[id] = {value};
  spvtools::Optimizer optimizer(SPV_ENV_VULKAN_1_1);
  optimizer.RegisterPass(spvtools::CreateSetSpecConstantDefaultValuePass(values))
      .RegisterPass(spvtools::CreateFreezeSpecConstantValuePass())
      .RegisterPass(spvtools::CreateFoldSpecConstantOpAndCompositePass())
      .RegisterPerformancePasses();
  spvtools::OptimizerOptions options;
  options.set_run_validator(false);
  std::vector<std::uint32_t> result;
  const bool known = optimizer.Run(words.data(), words.size(), &result, options);
  return known ? result : std::vector(words.begin(), words.end());
}

SpecializedKernels::SpecializedKernels(const Context& context)
    : file_(device_file("kernels", context.capabilities(), context.settings().cache_folder)) {
  if (!file_.empty()) kernels_ = read(read_sealed(file_));
}

const std::vector<std::uint32_t>& SpecializedKernels::get(const EmbeddedShader& shader, const Constants& constants) {
  std::vector<std::uint32_t>& kernel = kernels_[key_of(shader, constants)];
  if (kernel.empty()) {
    kernel = specialized(shader.words, constants);
    changed_ = true;
  }
  return kernel;
}

void SpecializedKernels::save() noexcept {
  if (file_.empty() || !changed_) return;
  try {
    kernels_.merge(read(read_sealed(file_)));  // another process may have added some
    write_sealed(file_, written(kernels_));
    changed_ = false;
  } catch (const std::exception&) {
    file_.clear();  // the disk is full or not writable
  }
}

}  // namespace halfstep::vk
