#pragma once

#include <cstdint>
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
/// The same with the words of a file: "arithmetic.exp=exp.spv". Throws Error if it cannot be read.
void replace_kernel_by_file(std::string_view replacement);

/// Whether recordings that are submitted again are not to be executed, a fault that no shader shows.
bool loses_submits();

/// A dispatch with its kernel and the kinds of its bindings as the driver under test gets them. The kernel is that for
/// the type, and has the way of rounding, which a dispatch with SPIR-V does not say.
plan::Dispatch given_dispatch(const plan::Dispatch& dispatch);

/// What a driver gets for one of the self-test's kernels, or for one that replaces none.
std::vector<std::uint32_t> given_words(const std::string& kernel);

}  // namespace halfstep::selftest
