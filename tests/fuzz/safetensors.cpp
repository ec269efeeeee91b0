// Safetensors files, and the summary of what is in them.
#include <halfstep/checkpoint.h>
#include <halfstep/error.h>

#include "fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const InputFile file(data, size);
  try {
    for (const halfstep::TensorSummary& tensor : halfstep::summarize_checkpoint(file.path()).tensors) {
      if (tensor.not_finite < 0 || tensor.not_finite > halfstep::elements(tensor.shape)) __builtin_trap();
    }
  } catch (const halfstep::Error&) {
  }
  return 0;
}
