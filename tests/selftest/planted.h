#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plan/dispatch.h"

namespace halfstep::selftest {

/// A fault of a driver that is imitated by changing SPIR-V before the driver gets it, to show that the self-test finds
/// it.
struct Planted {
  std::string name;
  std::string what;
  std::string found_by;  ///< the case that must find it
};

const std::vector<Planted>& planted_faults();

/// Plants a fault in all shaders that are compiled from now on. Throws Error if there is no such fault.
void plant(std::string_view name);

/// From now on the driver gets these words in place of a kernel's of the self-test: "arithmetic.exp". The first that
/// were given for a kernel stay.
void replace_kernel(const std::string& kernel, std::vector<std::uint32_t> words);
/// The same with the words of a file: "arithmetic.exp=exp.spv". Throws Error if it cannot be read, or there is no such
/// kernel.
void replace_kernel_by_file(std::string_view replacement);
/// Whether the driver got them since, if they were given.
bool has_used_file();

/// Whether recordings that are submitted again are not to be executed, a fault that no shader shows.
bool loses_submits();

/// From now on the kernel that the driver gets is kept in FOLDER/running until it gets the next: if the process ends,
/// that is to blame, or a kernel that was made before.
void keep_given_kernels(const std::filesystem::path& folder);
/// Removes what is kept so.
void forget_given_kernels();
/// Moves what a process that ended has kept so to FOLDER/KERNEL.spv; an empty path if it is none.
std::filesystem::path given_kernel_of(const std::filesystem::path& folder);

/// A dispatch with its kernel and the kinds of its bindings as the driver under test gets them. The kernel is that for
/// the type, and has the way of rounding, which a dispatch with SPIR-V does not say.
plan::Dispatch given_dispatch(const plan::Dispatch& dispatch);

/// What a driver gets for one of the self-test's kernels, or for one that replaces none.
std::vector<std::uint32_t> given_words(const std::string& kernel);

}  // namespace halfstep::selftest
