// What two reports differ in, for people.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>

#include "selftest/report.h"

namespace halfstep::selftest {
namespace {

std::string header(char letter, const Report& report) {
  std::string counts;
  for (const Verdict verdict : {Verdict::right, Verdict::slow, Verdict::missing, Verdict::wrong, Verdict::crashed}) {
    const auto count = std::ranges::count(report.cases, verdict, &CaseReport::verdict);
    if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, name(verdict));
  }
  return fmt::format("{}  {}, {} ({}, Halfstep {}): {}\n", letter, report.device, report.driver, report.mode,
                     report.version, counts);
}

/// A verdict with what was found first.
std::string verdict_of(const CaseReport& report) {
  const std::vector<std::string>& reasons = report.verdict == Verdict::missing ? report.facts : report.faults;
  const std::string more = reasons.size() > 1 ? fmt::format(" (and {} more)", reasons.size() - 1) : "";
  return std::string(name(report.verdict)) + (reasons.empty() ? "" : ": " + reasons.front() + more);
}

/// The words of a fact, without its numbers.
std::string pattern(const std::string& fact) {
  std::string text;
  for (const char c : fact)
    if ((c < '0' || c > '9') && c != '.') text += c;
  return text;
}

/// Facts that only one of the cases has; those of the same words stand together.
std::string facts_of(const CaseReport& first, const CaseReport& second) {
  const auto has = [](const CaseReport& report, const std::string& fact) {
    return std::ranges::find(report.facts, fact) != report.facts.end();
  };
  std::map<std::string, std::array<std::string, 2>> by_words;
  for (const std::string& fact : first.facts)
    if (!has(second, fact)) by_words[pattern(fact)][0] += "    A  " + fact + "\n";
  for (const std::string& fact : second.facts)
    if (!has(first, fact)) by_words[pattern(fact)][1] += "    B  " + fact + "\n";
  std::string text;
  for (const auto& [words, lines] : by_words) text += lines[0] + lines[1];
  return text.empty() ? "" : "  " + first.name + "\n" + text;
}

/// A quantity whose largest errors differ.
struct Accuracy {
  std::string of;
  LargestError first;
  LargestError second;
  /// In parts of what is allowed; none where both are the nearest numbers.
  double difference() const {
    constexpr double rounding = 0.501;
    const bool nearest = std::max(first.ulps, second.ulps) < rounding && std::max(first.share, second.share) <= 1;
    return nearest ? 0 : std::abs(first.share - second.share);
  }
};

void add_accuracies(std::vector<Accuracy>& accuracies, const CaseReport& first, const CaseReport& second) {
  std::map<std::string, LargestError> errors;
  for (const LargestError& error : second.errors) errors.try_emplace(error.of, error);
  for (const LargestError& error : first.errors) {
    const auto other = errors.find(error.of);
    if (other != errors.end() && (other->second.ulps != error.ulps || other->second.share != error.share))
      accuracies.push_back({first.name + ": " + error.of, error, other->second});
  }
}

std::string accuracy(const LargestError& error) {
  if (error.share > 1 && error.ulps == 0) return "wrong";
  return fmt::format("{:.3g} ulp, {:.0f} %", error.ulps, std::min(100 * error.share, 1e6));
}

/// Those that differ by more than a fifth of what is allowed, the largest difference first.
std::string accuracies_of(std::vector<Accuracy> accuracies) {
  if (accuracies.empty()) return "";
  constexpr double least = 0.2;
  std::ranges::stable_sort(accuracies, std::greater<>{}, &Accuracy::difference);
  std::string text = "\nLargest errors, in units in the last place and in percent of what is allowed\n";
  std::size_t shown = 0;
  for (; shown < accuracies.size() && accuracies[shown].difference() > least; ++shown) {
    const Accuracy& one = accuracies[shown];
    text += fmt::format("  {}\n    A  {}\n    B  {}\n", one.of, accuracy(one.first), accuracy(one.second));
  }
  if (shown < accuracies.size())
    text += fmt::format("  {}{} that differ by at most {:.0f} % of what is allowed\n", shown > 0 ? "and " : "",
                        accuracies.size() - shown, 100 * least);
  return text;
}

const CaseReport* same_case(const Report& report, const CaseReport& one) {
  const auto found = std::ranges::find(report.cases, one.name, &CaseReport::name);
  return found == report.cases.end() ? nullptr : &*found;
}

std::string only_in(const char* title, const Report& report, const Report& other) {
  std::string text;
  for (const CaseReport& one : report.cases)
    if (same_case(other, one) == nullptr) text += fmt::format("  {}\n", one.name);
  return text.empty() ? "" : fmt::format("\n{}\n", title) + text;
}

}  // namespace

std::string comparison(const Report& first, const Report& second) {
  std::string verdicts;
  std::string facts;
  std::vector<Accuracy> accuracies;
  for (const CaseReport& one : first.cases) {
    const CaseReport* const other = same_case(second, one);
    if (other == nullptr) continue;
    if (one.verdict != other->verdict)
      verdicts += fmt::format("  {}\n    A  {}\n    B  {}\n", one.name, verdict_of(one), verdict_of(*other));
    if (one.verdict == Verdict::missing || other->verdict == Verdict::missing) continue;
    facts += facts_of(one, *other);
    add_accuracies(accuracies, one, *other);
  }
  std::string text;
  if (!verdicts.empty()) text += "\nVerdicts\n" + verdicts;
  if (!facts.empty()) text += "\nWhat they do where more than one behaviour is right\n" + facts;
  text += accuracies_of(std::move(accuracies));
  text += only_in("Cases of A only", first, second) + only_in("Cases of B only", second, first);
  return header('A', first) + header('B', second) + (text.empty() ? "\nno difference\n" : text);
}

}  // namespace halfstep::selftest
