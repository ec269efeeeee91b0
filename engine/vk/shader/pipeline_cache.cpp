#include "vk/shader/pipeline_cache.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "vk/device/create.h"
#include "vk/device/notes.h"
#include "vk/device/structure.h"
#include "vk/shader/sealed_file.h"

namespace halfstep::vk {
namespace {

/// Whether the header at the start of the data names this driver and device.
bool is_drivers_own(std::span<const std::byte> data, const Capabilities& capabilities) {
  VkPipelineCacheHeaderVersionOne header;
  if (data.size() < sizeof header) return false;
  std::memcpy(&header, data.data(), sizeof header);
  return header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && header.vendorID == capabilities.vendor_id &&
         header.deviceID == capabilities.device_id &&
         std::equal(std::begin(header.pipelineCacheUUID), std::end(header.pipelineCacheUUID),
                    capabilities.pipeline_cache_uuid.begin());
}

}  // namespace

std::vector<std::byte> drivers_own(std::vector<std::byte> data, const Capabilities& capabilities) {
  if (!is_drivers_own(data, capabilities)) return {};
  return data;
}

PipelineCache::PipelineCache(Context& context)
    : context_(context), file_(device_file("pipelines", context.capabilities(), context.settings().cache_folder)) {
  const std::vector<std::byte> known =
      file_.empty() ? std::vector<std::byte>{} : drivers_own(read_sealed(file_), context.capabilities());
  auto info = structure<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = known.size();
  info.pInitialData = known.data();
  cache_ = create(context, context.table().vkCreatePipelineCache, info, "vkCreatePipelineCache");
  // Queried from the driver instead of the file: some drivers add to the data that they are given.
  known_bytes_ = known.empty() ? 0 : data().size();
}

PipelineCache::~PipelineCache() {
  context_.table().vkDestroyPipelineCache(context_.device(), cache_, context_.allocator());
}

std::vector<std::byte> PipelineCache::data() const {
  const DeviceTable& table = context_.table();
  std::size_t size = 0;
  std::vector<std::byte> bytes;
  if (table.vkGetPipelineCacheData(context_.device(), cache_, &size, nullptr) != VK_SUCCESS) return {};
  bytes.resize(size);
  if (table.vkGetPipelineCacheData(context_.device(), cache_, &size, bytes.data()) != VK_SUCCESS) return {};
  bytes.resize(size);
  return bytes;
}

void PipelineCache::save() noexcept {
  const std::scoped_lock lock(mutex_);
  if (file_.empty()) return;
  try {
    const std::vector<std::byte> now = data();
    if (now.size() <= known_bytes_) return;
    write_sealed(file_, now);
    known_bytes_ = now.size();
  } catch (const std::exception&) {
    file_.clear();  // the disk is full or not writable; the next process compiles again
  }
}

}  // namespace halfstep::vk
