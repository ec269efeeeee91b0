#pragma once

#include <halfstep/error.h>

#include <cstdint>
#include <span>

#include "io/decode_image.h"

/// Decodes an input to RGB and to grey; unless that throws Error, the image must have all its pixels.
inline int decode_both_ways(halfstep::io::DecodedImage (*decode)(std::span<const std::uint8_t>, std::int64_t),
                            const std::uint8_t* data, std::size_t size) {
  for (const std::int64_t channels : {3, 1}) {
    try {
      const halfstep::io::DecodedImage image = decode({data, size}, channels);
      if (image.bytes.size() != std::size_t{image.height} * image.width * static_cast<std::size_t>(channels)) {
        __builtin_trap();
      }
    } catch (const halfstep::Error&) {
    }
  }
  return 0;
}
