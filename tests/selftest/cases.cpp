#include "selftest/cases.h"

#include <fmt/format.h>

#include <utility>

#include "selftest/bed.h"

namespace halfstep::selftest {

const std::vector<Case>& all_cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> cases;
    for (const auto part : {number_cases, half_cases, subgroup_cases, memory_cases, limit_cases, large_cases,
                            matrix_cases, kernel_cases, operator_cases}) {
      for (Case& one : part()) cases.push_back(std::move(one));
    }
    return cases;
  }();
  return all;
}

void add_fault(CaseReport& report, std::string fault) {
  report.verdict = Verdict::wrong;
  report.faults.push_back(std::move(fault));
}

void expect(CaseReport& report, const std::string& what, std::uint64_t got, std::uint64_t want) {
  if (got == want) return;
  add_fault(report, fmt::format("{} is {}, not {}", what, got, want));
  if (report.kernel.empty()) report.kernel = last_kernel();
}

void set_missing(CaseReport& report, std::string reason) {
  report.verdict = Verdict::missing;
  report.facts.push_back(std::move(reason));
}

}  // namespace halfstep::selftest
