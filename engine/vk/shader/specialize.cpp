#include "vk/shader/specialize.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
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

/// Adds what written() returned.
void read(std::span<const std::byte> data, Kernels& kernels) {
  std::uint32_t sizes[2];
  while (data.size() >= sizeof sizes) {
    std::memcpy(sizes, data.data(), sizeof sizes);
    data = data.subspan(sizeof sizes);
    if (data.size() < sizes[0] + std::size_t{4} * sizes[1]) return;
    std::string key(reinterpret_cast<const char*>(data.data()), sizes[0]);
    std::vector<std::uint32_t> words(sizes[1]);
    std::memcpy(words.data(), data.data() + sizes[0], 4 * words.size());
    data = data.subspan(sizes[0] + 4 * words.size());
    kernels.emplace(std::move(key), std::move(words));
  }
}

Kernels read_file(const std::filesystem::path& file) {
  Kernels kernels;
  const SealedParts stored = read_sealed_parts(file);
  for (const std::vector<std::byte>& part : stored.parts) read(part, kernels);
  if (!stored.damaged) return kernels;
  try {
    // Nothing would be read that is appended after the damage.
    if (kernels.empty()) {
      std::filesystem::remove(file);
    } else {
      write_sealed(file, written(kernels));
    }
  } catch (const std::exception&) {
    return kernels;  // the next process tries again
  }
  return kernels;
}

}  // namespace

struct SpecializedKernels::Shared {
  std::mutex mutex{};
  std::filesystem::path file{};  ///< empty if nothing is stored
  Kernels kernels{};
  Kernels unsaved{};  ///< of these, what the file does not have
};

SpecializedKernels::SpecializedKernels(const Context& context) {
  static std::mutex mutex;
  static std::map<std::filesystem::path, std::weak_ptr<Shared>> by_file;
  const std::filesystem::path file = device_file(fmt::format("kernels{}", specializer_revision), context.capabilities(),
                                                 context.settings().cache_folder);
  const std::scoped_lock lock(mutex);
  shared_ = by_file[file].lock();
  if (shared_) return;
  shared_ = std::make_shared<Shared>();
  shared_->file = file;
  if (!file.empty()) shared_->kernels = read_file(file);
  by_file[file] = shared_;
}

const std::vector<std::uint32_t>& SpecializedKernels::get(const EmbeddedShader& shader, const Constants& constants) {
  const std::scoped_lock lock(shared_->mutex);
  const std::string key = key_of(shader, constants);
  std::vector<std::uint32_t>& kernel = shared_->kernels[key];
  if (kernel.empty()) {
    kernel = specialized(shader.words, constants);
    if (!shared_->file.empty()) shared_->unsaved[key] = kernel;
  }
  return kernel;
}

void SpecializedKernels::save() noexcept {
  try {
    const std::scoped_lock lock(shared_->mutex);
    if (shared_->unsaved.empty()) return;
    if (!append_sealed(shared_->file, written(shared_->unsaved))) shared_->file.clear();  // it cannot be written
    shared_->unsaved.clear();
  } catch (const std::exception&) {
    return;  // no memory: the next save tries again
  }
}

}  // namespace halfstep::vk
