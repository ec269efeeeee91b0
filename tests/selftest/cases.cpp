#include "selftest/cases.h"

#include <utility>

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

void set_missing(CaseReport& report, std::string reason) {
  report.verdict = Verdict::missing;
  report.facts.push_back(std::move(reason));
}

}  // namespace halfstep::selftest
