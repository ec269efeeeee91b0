#include "vk/pipeline_cache.h"

#include <halfstep/process.h>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>

#include "vk/notes.h"
#include "vk/result.h"
#include "vk/structure.h"

namespace halfstep::vk {
namespace {

/// Comes before the driver's data.
struct Seal {
  std::uint32_t magic = 0x43505348;  // "HSPC"
  std::uint32_t version = 1;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};

std::uint64_t checksum(std::uint64_t start, std::span<const std::byte> bytes) {
  return crc32_z(start, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

/// What the driver puts first in its data: itself.
bool is_drivers_own(std::span<const std::byte> data, const Capabilities& capabilities) {
  VkPipelineCacheHeaderVersionOne header;
  if (data.size() < sizeof header) return false;
  std::memcpy(&header, data.data(), sizeof header);
  return header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && header.vendorID == capabilities.vendor_id &&
         header.deviceID == capabilities.device_id &&
         std::equal(std::begin(header.pipelineCacheUUID), std::end(header.pipelineCacheUUID),
                    capabilities.pipeline_cache_uuid.begin());
}

std::vector<std::byte> read(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

}  // namespace

std::vector<std::byte> seal_cache(std::span<const std::byte> data) {
  Seal seal;
  seal.bytes = data.size();
  seal.checksum = checksum(0, data);
  std::vector<std::byte> contents(sizeof seal + data.size());
  std::memcpy(contents.data(), &seal, sizeof seal);
  std::copy(data.begin(), data.end(), contents.begin() + sizeof seal);
  return contents;
}

std::vector<std::byte> unseal_cache(std::span<const std::byte> contents, const Capabilities& capabilities) {
  if (contents.size() < sizeof(Seal)) return {};
  Seal seal;
  std::memcpy(&seal, contents.data(), sizeof seal);
  const std::span<const std::byte> data = contents.subspan(sizeof seal);
  const bool intact = seal.magic == Seal{}.magic && seal.version == Seal{}.version && seal.bytes == data.size() &&
                      seal.checksum == checksum(0, data);
  if (!intact || !is_drivers_own(data, capabilities)) return {};
  return {data.begin(), data.end()};
}

PipelineCache::PipelineCache(Context& context)
    : context_(context.shared_from_this()), file_(device_file("pipelines", context.capabilities())) {
  const std::vector<std::byte> known =
      file_.empty() ? std::vector<std::byte>{} : unseal_cache(read(file_), context.capabilities());
  auto info = structure<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = known.size();
  info.pInitialData = known.data();
  check(context.table().vkCreatePipelineCache(context.device(), &info, nullptr, &cache_), "vkCreatePipelineCache");
  // Asked of the driver rather than taken from the file: some add to what they are given.
  known_bytes_ = known.empty() ? 0 : data().size();
}

PipelineCache::~PipelineCache() {
  save();
  context_->table().vkDestroyPipelineCache(context_->device(), cache_, nullptr);
}

std::vector<std::byte> PipelineCache::data() const {
  const VolkDeviceTable& table = context_->table();
  std::size_t size = 0;
  std::vector<std::byte> bytes;
  if (table.vkGetPipelineCacheData(context_->device(), cache_, &size, nullptr) != VK_SUCCESS) return {};
  bytes.resize(size);
  if (table.vkGetPipelineCacheData(context_->device(), cache_, &size, bytes.data()) != VK_SUCCESS) return {};
  bytes.resize(size);
  return bytes;
}

void PipelineCache::save() noexcept {
  if (file_.empty()) return;
  try {
    const std::vector<std::byte> now = data();
    if (now.size() <= known_bytes_) return;
    const std::vector<std::byte> contents = seal_cache(now);
    const Bytes parts[] = {contents};
    write_atomically(file_, parts);
    known_bytes_ = now.size();
  } catch (const std::exception&) {
    file_.clear();  // the disk is full or not ours; the next process compiles anew
  }
}

}  // namespace halfstep::vk
