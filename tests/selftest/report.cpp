#include "selftest/report.h"

#include <halfstep/error.h>
#include <halfstep/process.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>

namespace halfstep::selftest {
namespace {

constexpr std::array<std::string_view, 5> names{"right", "slow", "missing", "wrong", "crashed"};

Verdict verdict_of(const std::string& text) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) throw Error("[selftest] expected a verdict, got " + text);
  return static_cast<Verdict>(found - names.begin());
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
  report.identity = json.value("identity", "");
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

std::string json_text(const Report& report) {
  nlohmann::ordered_json json{
      {"device", report.device},     {"driver", report.driver}, {"api_version", report.api_version},
      {"identity", report.identity}, {"type", report.type},     {"tier", report.tier},
      {"halfstep", report.version},  {"mode", report.mode},     {"seconds", report.seconds},
      {"avoided", report.avoided}};
  json["cases"] = nlohmann::ordered_json::array();
  for (const CaseReport& one : report.cases) json["cases"].push_back(json_of(one));
  // What a driver printed, or calls itself, may be no UTF-8.
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
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
  const Bytes parts[] = {std::as_bytes(std::span(text))};
  write_atomically(file, parts);
}

}  // namespace halfstep::selftest
