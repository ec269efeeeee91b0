#include "vk/shader/packs.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <lzma.h>

#include <bit>
#include <limits>

namespace halfstep::vk {

std::vector<std::uint32_t> expand(const ShaderPack& pack) {
  std::size_t count = 0;
  for (const PackedVariant& variant : pack.variants) count += variant.words;
  std::vector<std::uint32_t> words(count);
  const std::size_t bytes = words.size() * sizeof words[0];
  std::uint64_t memory = std::numeric_limits<std::uint64_t>::max();
  std::size_t read = 0;
  std::size_t written = 0;
  const lzma_ret result = lzma_stream_buffer_decode(&memory, 0, nullptr, pack.bytes.data(), &read, pack.bytes.size(),
                                                    reinterpret_cast<std::uint8_t*>(words.data()), &written, bytes);
  if (result != LZMA_OK || written != bytes) {
    fail(result == LZMA_MEM_ERROR ? ErrorCode::out_of_memory : ErrorCode::system, "shader",
         fmt::format("expected {} bytes of the variants of {}, got {} and liblzma's status {}", bytes,
                     pack.variants.front().name, written, static_cast<int>(result)));
  }
  static_assert(std::endian::native == std::endian::little, "words are in the order of their bytes");
  return words;
}

}  // namespace halfstep::vk
