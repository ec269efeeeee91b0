// Files of tokenizers, and what they make of a text.
#include <halfstep/error.h>
#include <halfstep/text.h>

#include "fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const InputFile file(data, size);
  try {
    const halfstep::Tokenizer tokenizer = halfstep::Tokenizer::load(file.path());
    for (const std::uint32_t token : tokenizer.encode_for_model("the cat's caf\u00e9 [MASK]", "mat").tokens) {
      if (token >= tokenizer.size()) __builtin_trap();
    }
  } catch (const halfstep::Error&) {
  }
  return 0;
}
