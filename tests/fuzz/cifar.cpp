// CIFAR batches: the first byte of the input chooses between CIFAR-10 and CIFAR-100, the rest is the file.
#include <halfstep/data.h>
#include <halfstep/error.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace {

namespace fs = std::filesystem;

// Created once: the folder that the readers search.
const fs::path& folder() {
  static const fs::path path = [] {
    fs::path made = fs::temp_directory_path() / ("halfstep-fuzz-cifar-" + std::to_string(getpid()));
    fs::create_directory(made);
    return made;
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool hundred = data[0] % 2 != 0;
  const fs::path file = folder() / (hundred ? "test.bin" : "test_batch.bin");
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(data) + 1, static_cast<std::streamsize>(size - 1));  // NOLINT: bytes
  try {
    const halfstep::Dataset set = hundred ? halfstep::read_cifar100(folder(), halfstep::Split::test)
                                          : halfstep::read_cifar10(folder(), halfstep::Split::test);
    const auto count = static_cast<std::size_t>(set.count);
    const bool labelled = std::ranges::all_of(set.labels, [&](std::uint32_t label) { return label < set.classes; });
    if (set.samples.size() != 3072 * count || set.labels.size() != count || !labelled) __builtin_trap();
  } catch (const halfstep::Error&) {
  }
  return 0;
}
