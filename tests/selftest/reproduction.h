#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/observe.h"
#include "plan/plan.h"

namespace halfstep::selftest {

/// The dispatches of an operator, with the SPIR-V that a driver got, all that they read, and one tensor that they give:
/// to run them by themselves, on any driver. A file describes it; beside that are a file of numbers and the SPIR-V.
struct Reproduction {
  /// Bytes before the first dispatch; all bits are set beyond those that are given.
  struct Buffer {
    std::string name;
    std::uint64_t bytes = 0;
    std::vector<std::byte> content{};
  };

  std::string what;    ///< "attention, result in f16"
  std::string device;  ///< where it was kept
  plan::Program program{};
  std::vector<Buffer> buffers{};
  plan::TensorId output = 0;
  std::vector<double> want{};
  std::vector<double> allowed{};  ///< how far each element may be off
};

Reproduction reproduction_of(const std::string& what, const testing::ObservedRun& run);

/// Writes FOLDER/NAME.json, NAME.bin and NAME.0.spv, ...; returns the first. Throws Error if it cannot.
std::filesystem::path write(const Reproduction& reproduction, const std::filesystem::path& folder,
                            const std::string& name);
/// Throws Error if the files cannot be read or are none.
Reproduction read_reproduction(const std::filesystem::path& file);

/// Runs it on the device under test. Returns what is wrong, or an empty text. Throws Error if the driver refuses.
std::string objection(const Reproduction& reproduction);

}  // namespace halfstep::selftest
