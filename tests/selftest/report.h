#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep::selftest {

enum class Verdict : std::uint8_t {
  right,
  slow,     ///< right, but slower than another way to compute the same
  missing,  ///< the device does not offer it
  wrong,
  crashed,  ///< or did not end in time
};

/// The largest error of one quantity.
struct LargestError {
  std::string of;  ///< "exp" or "gradient of input 0 in f16"
  double ulps = 0;
  double allowed = 0;  ///< in units in the last place; 0 if what is allowed is not a number of them
  double share = 0;    ///< of what is allowed; above 1 is wrong
  std::string at{};    ///< the input that made it, what was got and what is right
};

/// What was found of one case.
struct CaseReport {
  std::string name;
  std::string what;  ///< what it is about, in a sentence
  Verdict verdict = Verdict::right;
  std::vector<std::string> faults{};  ///< each that makes it wrong
  std::vector<std::string> facts{};   ///< what the device does where more than one behaviour is right
  std::vector<LargestError> errors{};
  std::string kernel{};    ///< the first that was wrong
  std::string spirv{};     ///< the file of its SPIR-V, the smallest reproduction
  std::string dispatch{};  ///< the file that describes its dispatches and what must come out: see --kernel
  std::string command{};   ///< that runs the case alone
  double seconds = 0;
};

struct Report {
  std::string device{};
  std::string driver{};
  std::string api_version{};
  std::string type{};
  std::string tier{};
  std::string version{};  ///< Halfstep's version
  std::string mode{};     ///< "quick", "normal", "full" or "cases"
  std::vector<std::string> avoided{};
  std::vector<CaseReport> cases{};
  double seconds = 0;
  std::string identity{};  ///< the device's and the driver's numbers, and the operating system
};

std::string_view name(Verdict verdict);

/// 0 if all cases are right, slow or missing; 1 if one is wrong or crashed.
int exit_code(const Report& report);

/// JSON: what was tested, then what was found.
std::string json_text(const Report& report);

/// Throws Error if the file cannot be read or is no report.
Report read_report(const std::filesystem::path& file);
/// Throws Error if the file cannot be written.
void write_text(const std::filesystem::path& file, const std::string& text);

/// One page without anything outside of it.
std::string html_page(const Report& report);

/// What two reports differ in, for people: verdicts, behaviour, and errors that differ much. comparison.cpp
std::string comparison(const Report& first, const Report& second);

}  // namespace halfstep::selftest
