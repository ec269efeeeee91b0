// IDX files, gzipped or not.
#include "data/idx.h"

#include <halfstep/error.h>

#include "fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const InputFile file(data, size);
  try {
    const halfstep::data::IdxArray array = halfstep::data::read_idx_array(file.path(), 1, 4);
    if (array.bytes.size() != static_cast<std::size_t>(halfstep::elements(array.shape))) __builtin_trap();
  } catch (const halfstep::Error&) {
  }
  return 0;
}
