#include "tune/admission.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <sstream>

#include "ops/choices.h"
#include "tune/note_key.h"
#include "tune/trial_run.h"

namespace halfstep::tune {
namespace {

constexpr const char* right = "right";
constexpr char no_verdict = '?';  ///< begins the answer of a child that could not judge

/// Whether what failed says nothing about the kernel that was being checked.
bool is_no_verdict(ErrorCode code) {
  return code == ErrorCode::cancelled || code == ErrorCode::out_of_memory || code == ErrorCode::device_lost;
}

/// Describes the first element that differs from the expected value.
std::string difference(const plan::Trial& trial, const std::vector<float>& got) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double apart = std::abs(static_cast<double>(got[i]) - static_cast<double>(trial.expected[i]));
    if (apart <= trial.allowed_difference) continue;  // false for NaN
    return fmt::format("element {} is {}, expected {} +- {}", i, got[i], trial.expected[i], trial.allowed_difference);
  }
  return {};
}

/// As DeviceSettings has them.
std::string limits_text(const vk::Limits& limits) {
  std::string text;
  for (const auto& [name, value] : limits) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  return text;
}

/// A request_of() as lines; the folder, which may have any name, is the rest.
struct Request {
  std::string device, kind, name, rounded_by_driver, tier, gemm, limits, cache_folder;

  explicit Request(std::string_view text) {
    std::istringstream lines{std::string(text)};
    for (std::string* each : {&device, &kind, &name, &rounded_by_driver, &tier, &gemm, &limits})
      std::getline(lines, *each);
    cache_folder.assign(std::istreambuf_iterator<char>(lines), {});
  }
  DeviceSettings as_settings() const {
    DeviceSettings settings;
    settings.tier = tier;
    settings.gemm = gemm;
    settings.limits = limits;
    settings.cache_folder = std::filesystem::path(cache_folder);
    settings.may_fork = false;
    return settings;
  }
};

}  // namespace

std::string check(vk::Context& context, vk::Pipelines& pipelines, const plan::Target& target, const std::string& kind,
                  const std::string& name) {
  const plan::Target with_name = ops::with_candidate(target, kind, name);
  bool checked = false;
  try {
    for (const plan::Trial& trial : ops::checks(kind)) {
      TrialRun run(context, pipelines, with_name, trial);
      if (!run.takes(kind, name)) continue;
      checked = true;
      run.run();
      if (std::string wrong = difference(trial, run.result()); !wrong.empty()) return wrong;
    }
  } catch (const Error& error) {
    if (is_no_verdict(error.code())) throw;
    return error.what();  // the driver refused it, whatever it advertised
  }
  return checked ? "" : "it computes none of its checks";
}

std::string request_of(const vk::Context& context, const plan::Target& target, const std::string& kind,
                       const std::string& name) {
  const vk::Settings& settings = context.settings();
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", context.info().index, kind, name,
                     target.float16.rounded_by_driver, settings.tier, settings.gemm, limits_text(settings.limits),
                     settings.cache_folder.string());
}

std::string check_in_child(std::string_view request) {
  try {
    const Request wanted(request);
    const std::shared_ptr<vk::Context> context = vk::Context::open(wanted.device, wanted.as_settings());
    vk::Pipelines pipelines(*context);
    plan::Target target = context->target();
    target.float16.rounded_by_driver = wanted.rounded_by_driver == "true";
    const std::string wrong = check(*context, pipelines, target, wanted.kind, wanted.name);
    return wrong.empty() ? right : wrong;
  } catch (const std::exception& error) {
    return no_verdict + std::string(error.what());
  }
}

const Verdict& Admission::verdict(const plan::Target& target, const std::string& kind,
                                  const plan::Candidate& candidate) {
  const std::string key = note_key(fmt::format("{} by {}", kind, candidate.name), context_.capabilities(), target);
  if (const auto known = verdicts_.find(key); known != verdicts_.end()) return known->second;
  if (const std::optional<std::string> noted = recheck_ ? std::nullopt : notes_.find(key))
    return verdicts_[key] = {.objection = *noted == right ? "" : *noted, .hindrance = {}};
  const Verdict found = find_out(target, kind, candidate);
  if (!found.hindrance) notes_.add(key, found.objection.empty() ? right : found.objection);
  return verdicts_[key] = found;
}

Verdict Admission::find_out(const plan::Target& target, const std::string& kind, const plan::Candidate& candidate) {
  if (candidate.risky) return find_out_in_child(target, kind, candidate.name);
  // It may be composed of what is a choice with checks of its own. Of those ways, none is taken that is risky.
  plan::Target without_risk = target;
  without_risk.matrix_shapes.clear();
  without_risk.gemm_kernels.clear();
  try {
    return {.objection = check(context_, pipelines_, without_risk, kind, candidate.name), .hindrance = {}};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    return {.objection = error.what(), .hindrance = error.code()};
  }
}

Verdict Admission::find_out_in_child(const plan::Target& target, const std::string& kind, const std::string& name) {
  if (child_ == nullptr || !child_->alive())
    return {.objection = "no process to try it in", .hindrance = ErrorCode::unsupported};
  const process::Child::Outcome outcome = child_->run(work_, request_of(context_, target, kind, name), vk::child_limit);
  if (outcome.crashed) return {.objection = "it crashed", .hindrance = {}};
  if (!outcome.answer)
    return {.objection = "the process to try it in has ended, or took too long", .hindrance = ErrorCode::system};
  const std::string& answer = *outcome.answer;
  if (answer.starts_with(no_verdict)) return {.objection = answer.substr(1), .hindrance = ErrorCode::system};
  return {.objection = answer == right ? "" : answer, .hindrance = {}};
}

}  // namespace halfstep::tune
