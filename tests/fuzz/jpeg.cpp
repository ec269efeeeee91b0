// JPEG files.
#include "fuzz/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return decode_both_ways(halfstep::io::decode_jpeg, data, size);
}
