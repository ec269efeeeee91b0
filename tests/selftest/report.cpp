#include "selftest/report.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>

namespace halfstep::selftest {
namespace {

constexpr std::array<std::string_view, 5> names{"right", "slow", "missing", "wrong", "crashed"};

Verdict verdict_of(const std::string& text) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) throw Error("[selftest] expected a verdict, got " + text);
  return static_cast<Verdict>(found - names.begin());
}

std::string one_line(const CaseReport& report) {
  std::string text(name(report.verdict));
  if (!report.faults.empty()) text += ": " + report.faults.front();
  return text;
}

/// The largest errors of a case by what they are of.
std::map<std::string, double> ulps_of(const CaseReport& report) {
  std::map<std::string, double> ulps;
  for (const LargestError& error : report.errors) ulps[error.of] = std::max(ulps[error.of], error.ulps);
  return ulps;
}

std::string differences_of(const CaseReport& first, const CaseReport& second) {
  std::string text;
  if (first.verdict != second.verdict)
    text += fmt::format("{}\n  A  {}\n  B  {}\n", first.name, one_line(first), one_line(second));
  std::string details;
  const std::set<std::string> of_first(first.facts.begin(), first.facts.end());
  const std::set<std::string> of_second(second.facts.begin(), second.facts.end());
  for (const std::string& fact : of_first)
    if (!of_second.contains(fact)) details += fmt::format("  A only  {}\n", fact);
  for (const std::string& fact : of_second)
    if (!of_first.contains(fact)) details += fmt::format("  B only  {}\n", fact);
  const std::map<std::string, double> errors = ulps_of(second);
  for (const auto& [of, ulps] : ulps_of(first)) {
    const auto other = errors.find(of);
    if (other != errors.end() && std::abs(other->second - ulps) > 0.01)
      details += fmt::format("  {}: {:.2f} ulp in A, {:.2f} in B\n", of, ulps, other->second);
  }
  if (!details.empty() && text.empty()) text = first.name + "\n";
  return text + details;
}

nlohmann::ordered_json json_of(const CaseReport& one) {
  nlohmann::ordered_json errors = nlohmann::ordered_json::array();
  for (const LargestError& e : one.errors) {
    errors.push_back({{"of", e.of}, {"ulps", e.ulps}, {"share_of_allowed", e.share}, {"at", e.at}});
    if (e.allowed > 0) errors.back()["allowed_ulps"] = e.allowed;
  }
  return {{"name", one.name},         {"what", one.what},       {"verdict", name(one.verdict)}, {"faults", one.faults},
          {"facts", one.facts},       {"errors", errors},       {"kernel", one.kernel},         {"spirv", one.spirv},
          {"dispatch", one.dispatch}, {"command", one.command}, {"seconds", one.seconds}};
}

/// A report of a file. Throws what nlohmann::json does where it is none.
Report report_of(const nlohmann::json& json) {
  Report report{json.at("device"), json.at("driver"),   json.at("api_version"), json.at("type"),
                json.at("tier"),   json.at("halfstep"), json.at("mode"),        json.at("avoided")};
  report.seconds = json.at("seconds");
  for (const nlohmann::json& one : json.at("cases")) {
    CaseReport made{.name = one.at("name"), .what = one.at("what"), .verdict = verdict_of(one.at("verdict"))};
    made.faults = one.at("faults").get<std::vector<std::string>>();
    made.facts = one.at("facts").get<std::vector<std::string>>();
    for (const nlohmann::json& e : one.at("errors"))
      made.errors.push_back(
          {e.at("of"), e.at("ulps"), e.value("allowed_ulps", 0.0), e.at("share_of_allowed"), e.at("at")});
    made.kernel = one.at("kernel");
    made.spirv = one.at("spirv");
    made.dispatch = one.at("dispatch");
    made.command = one.at("command");
    made.seconds = one.at("seconds");
    report.cases.push_back(std::move(made));
  }
  return report;
}

}  // namespace

std::string_view name(Verdict verdict) {
  return names.at(static_cast<std::size_t>(verdict));
}

int exit_code(const Report& report) {
  return std::ranges::any_of(report.cases, [](const CaseReport& one) { return one.verdict >= Verdict::wrong; }) ? 1U
                                                                                                                : 0U;
}

nlohmann::ordered_json json_of(const Report& report) {
  nlohmann::ordered_json json{
      {"device", report.device}, {"driver", report.driver},   {"api_version", report.api_version},
      {"type", report.type},     {"tier", report.tier},       {"halfstep", report.version},
      {"mode", report.mode},     {"seconds", report.seconds}, {"avoided", report.avoided}};
  json["cases"] = nlohmann::ordered_json::array();
  for (const CaseReport& one : report.cases) json["cases"].push_back(json_of(one));
  return json;
}

Report read_report(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error("[selftest] expected a report, got no file " + file.string());
  try {
    return report_of(nlohmann::json::parse(stream));
  } catch (const nlohmann::json::exception& error) {
    throw Error(
        fmt::format("[selftest] expected a report of selftest --json in {}, got {}", file.string(), error.what()));
  }
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text;
  if (!stream.flush()) throw Error("[selftest] expected to write " + file.string() + ", got an error of the system");
}

std::string comparison(const Report& first, const Report& second) {
  std::string text = fmt::format("A  {}, {}\nB  {}, {}\n\n", first.device, first.driver, second.device, second.driver);
  const std::size_t before = text.size();
  for (const CaseReport& one : first.cases) {
    const auto other = std::ranges::find(second.cases, one.name, &CaseReport::name);
    text += other == second.cases.end() ? fmt::format("{}\n  only in A\n", one.name) : differences_of(one, *other);
  }
  for (const CaseReport& one : second.cases) {
    if (std::ranges::find(first.cases, one.name, &CaseReport::name) == first.cases.end())
      text += fmt::format("{}\n  only in B\n", one.name);
  }
  return text.size() == before ? text + "no difference\n" : text;
}

}  // namespace halfstep::selftest
