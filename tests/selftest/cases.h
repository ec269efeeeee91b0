#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "selftest/report.h"

namespace halfstep::selftest {

/// In which runs a case is: in all, in all but --quick, in --full only.
enum class Wanted : std::uint8_t { quick, normal, full };

/// One capability of a device. `run` fills the report; what it throws makes the case wrong, and a crash ends only the
/// process that it runs in.
struct Case {
  std::string name;  ///< "group/name"
  std::string what;
  Wanted wanted = Wanted::quick;
  std::function<void(CaseReport&)> run;
};

// The cases, by file.
std::vector<Case> number_cases();  ///< f32, integers and conversions
std::vector<Case> half_cases();    ///< f16 arithmetic and 16-bit storage
std::vector<Case> subgroup_cases();
std::vector<Case> memory_cases();    ///< atomics, barriers, litmus tests, addresses
std::vector<Case> limit_cases();     ///< constants, loops, workgroups, time
std::vector<Case> large_cases();     ///< buffers beyond 2 and 4 GiB
std::vector<Case> matrix_cases();    ///< matrix units by kernels of the self-test's own
std::vector<Case> operator_cases();  ///< operators and trainings: the project's tests of devices
std::vector<Case> kernel_cases();    ///< Halfstep's own ways to compute products and attention

/// All of them, in this order.
const std::vector<Case>& all_cases();

/// Where to keep the dispatches of operators that are wrong, or of all.
struct Keeping {
  std::filesystem::path folder;
  bool all = false;
};
void keep_dispatches(const Keeping& keeping);

/// Adds a fault, which makes the case wrong.
void add_fault(CaseReport& report, std::string fault);
/// Adds one of the last kernel where a number is another.
void expect(CaseReport& report, const std::string& what, std::uint64_t got, std::uint64_t want);
/// Makes the case one that the device does not offer, for a reason.
void set_missing(CaseReport& report, std::string reason);

}  // namespace halfstep::selftest
