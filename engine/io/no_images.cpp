// In the place of the image codecs where the library is built without them (HALFSTEP_IMAGES).
#include <halfstep/error.h>
#include <halfstep/image_folder.h>

#include "io/decode_image.h"

namespace halfstep {
namespace {

[[noreturn]] void refuse() {
  fail(ErrorCode::unsupported, "image", "this library was built without PNG and JPEG",
       "HALFSTEP_IMAGES=ON builds it with them");
}

}  // namespace

namespace io {

DecodedImage decode_png(std::span<const std::uint8_t> /*file*/, std::int64_t /*channels*/) {
  refuse();
}

DecodedImage decode_jpeg(std::span<const std::uint8_t> /*file*/, std::int64_t /*channels*/) {
  refuse();
}

}  // namespace io

void write_png(const std::filesystem::path& /*path*/, std::span<const std::uint8_t> /*pixels*/, std::int64_t /*height*/,
               std::int64_t /*width*/) {
  refuse();
}

}  // namespace halfstep
