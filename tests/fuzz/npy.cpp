// Arrays that NumPy saved.
#include <halfstep/data.h>
#include <halfstep/error.h>

#include "fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const InputFile file(data, size);
  try {
    const halfstep::Field field = halfstep::read_npy(file.path(), "array", 0xFFFFFFFF);
    const std::int64_t count = field.count();
    // Reads every element.
    if (field.type != halfstep::ElementType::f32) field.check(count);
    const std::int64_t bytes = count * halfstep::elements(field.shape) * halfstep::bytes(field.type);
    if (field.data.size() != static_cast<std::size_t>(bytes)) __builtin_trap();
  } catch (const halfstep::Error&) {
  }
  return 0;
}
