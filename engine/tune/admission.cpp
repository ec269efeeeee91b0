#include "tune/admission.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <sstream>

#include "ops/choices.h"
#include "tune/trial_run.h"

namespace halfstep::tune {
namespace {

/// Describes the first element that differs from the expected value.
std::string difference(const plan::Trial& trial, const std::vector<float>& got) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double apart = std::abs(static_cast<double>(got[i]) - static_cast<double>(trial.expected[i]));
    if (apart <= trial.allowed_difference) continue;  // false for NaN
    return fmt::format("element {} is {}, expected {} +- {}", i, got[i], trial.expected[i], trial.allowed_difference);
  }
  return {};
}

}  // namespace

std::string check(vk::Context& context, vk::Pipelines& pipelines, const std::string& kind, const std::string& name) {
  const plan::Target target = ops::with_candidate(context.target(), kind, name);
  bool checked = false;
  try {
    for (const plan::Trial& trial : ops::checks(kind)) {
      TrialRun run(context, pipelines, target, trial);
      if (!run.takes(kind, name)) continue;
      checked = true;
      run.run();
      if (std::string wrong = difference(trial, run.result()); !wrong.empty()) return wrong;
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled || error.code() == ErrorCode::out_of_memory) throw;
    return error.what();  // the driver refused it, whatever it advertised
  }
  return checked ? "" : "it computes none of its checks";
}

std::string check_in_child(std::string_view argument) {
  std::istringstream lines{std::string(argument)};
  std::array<std::string, 5> line;  // as find_out() gives them
  for (std::string& each : line) std::getline(lines, each);
  DeviceSettings settings;
  settings.tier = line[3];
  settings.gemm = line[4];
  const std::shared_ptr<vk::Context> context = vk::Context::open(line[0], settings);
  vk::Pipelines pipelines(*context);
  try {
    const std::string wrong = check(*context, pipelines, line[1], line[2]);
    return wrong.empty() ? "right" : wrong;
  } catch (const Error& error) {
    return error.what();
  }
}

std::string Admission::objection(const std::string& kind, const plan::Candidate& candidate) {
  const std::string key = fmt::format("{} by {}", kind, candidate.name);
  if (const auto known = verdicts_.find(key); known != verdicts_.end()) return known->second;
  const std::optional<std::string> noted = recheck_ ? std::nullopt : notes_.find(key);
  bool lasting = true;
  const std::string verdict = noted ? (*noted == "right" ? "" : *noted) : find_out(kind, candidate, lasting);
  if (!noted && lasting) notes_.add(key, verdict.empty() ? "right" : verdict);
  return verdicts_[key] = verdict;
}

std::string Admission::find_out(const std::string& kind, const plan::Candidate& candidate, bool& lasting) {
  constexpr std::chrono::seconds limit(60);
  if (!candidate.risky) {
    try {
      return check(context_, pipelines_, kind, candidate.name);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      lasting = false;  // there may be more another time
      return error.what();
    }
  }
  lasting = child_ != nullptr && child_->alive();
  if (!lasting) return "no process to try it in";
  const vk::Settings& settings = context_.settings();
  const auto answer = child_->run(
      work_,
      fmt::format("{}\n{}\n{}\n{}\n{}", context_.info().index, kind, candidate.name, settings.tier, settings.gemm),
      limit);
  if (!answer) return "it crashed";
  return *answer == "right" ? "" : *answer;
}

}  // namespace halfstep::tune
