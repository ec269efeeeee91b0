#include "tune/tuner.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ops/choices.h"
#include "ops/elementwise/rounding_choice.h"
#include "tune/note_key.h"
#include "tune/trial_run.h"

namespace halfstep::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds budget(1000);  ///< for all measurements of a program
constexpr std::size_t most_candidates = 3;
/// The minimum gain of another candidate over the rule's: a smaller one may be noise.
constexpr double least_gain = 0.07;

/// The candidates that may be used.
std::vector<Finding::Way*> admitted(Finding& finding) {
  std::vector<Finding::Way*> found;
  for (Finding::Way& way : finding.ways) {
    if (way.objection.empty()) found.push_back(&way);
  }
  return found;
}

}  // namespace

Tuner::Tuner(vk::Context& context, vk::Pipelines& pipelines, Tuning tuning, const std::filesystem::path& cache_folder)
    : context_(context),
      pipelines_(pipelines),
      tuning_(tuning),
      notes_(context.capabilities(), cache_folder,
             tuning == Tuning::force ? vk::Notes::Stored::replaced : vk::Notes::Stored::kept),
      admission_(context, pipelines, notes_, tuning == Tuning::force, context.child()),
      target_(context.target()),
      end_(Clock::now() + budget) {}

Tuner::Tuner(vk::Context& context, vk::Pipelines& pipelines)
    : Tuner(context, pipelines, context.settings().tuning, context.settings().cache_folder) {}

step::StepProgram Tuner::settled(plan::Target& target,
                                 const std::function<step::StepProgram(const plan::Target&)>& lower) {
  if (target.reproducible) return lower(target);
  settle_rounding(target);
  step::StepProgram program = lower(target);
  // What is chosen may leave choices of its own, such as the products of layers that are computed one by one.
  while (settle(program.plan.program.choices, target)) program = lower(target);
  return program;
}

bool Tuner::settle(std::span<const plan::Choice> choices, plan::Target& target) {
  std::vector<const plan::Choice*> order;
  for (const plan::Choice& choice : choices) order.push_back(&choice);
  std::ranges::stable_sort(order, std::ranges::greater{}, [](const plan::Choice* choice) { return choice->flops; });
  bool changed = false;
  target_.float16.rounded_by_driver = target.float16.rounded_by_driver;
  for (const plan::Choice* choice : order) {
    const bool open = tuning_ == Tuning::force || !choice->rule_is_known;
    if (!open || target.choices.contains(choice->key)) continue;
    if (!settled_.contains(choice->key)) settled_[choice->key] = chosen(*choice);
    target.choices[choice->key] = settled_[choice->key];  // for programs that another tuner settles, too
    changed = changed || settled_[choice->key] != choice->candidates.front().name;
  }
  notes_.save();
  return changed;
}

void Tuner::settle_rounding(plan::Target& target) {
  plan::Float16& float16 = target.float16;
  if (tuning_ == Tuning::off || !float16.rounding_is_promised || float16.rounded_by_driver) return;
  target_.float16.rounded_by_driver = false;
  const Verdict& verdict = admission_.verdict(target_, std::string(ops::rounding_kind), {.name = "driver"});
  float16.rounded_by_driver = verdict.objection.empty();
  notes_.save();
}

std::string Tuner::chosen(const plan::Choice& choice) {
  Finding finding;
  finding.key = choice.key;
  std::optional<ErrorCode> hindrance;
  for (const plan::Candidate& candidate : choice.candidates) {
    const Verdict& verdict = admission_.verdict(target_, choice.kind, candidate);
    finding.ways.push_back({candidate.name, verdict.objection});
    if (verdict.hindrance) hindrance = verdict.hindrance;
    if (admitted(finding).size() == most_candidates) break;
  }
  if (admitted(finding).empty()) {
    fail(hindrance.value_or(ErrorCode::bad_argument), "tune",
         fmt::format("expected a way to compute {} that matches its reference, got none on {}: {}", choice.kind,
                     context_.info().name, finding.ways.front().objection));
  }
  finding.chosen = decided(choice, finding, hindrance.has_value());
  return findings_.emplace_back(std::move(finding)).chosen;
}

/// The chosen candidate; the reason is stored in `finding`. What was measured with nothing missing is taken only if it
/// is stored: the next run may measure otherwise.
std::string Tuner::decided(const plan::Choice& choice, Finding& finding, bool hindered) {
  const std::vector<Finding::Way*> ways = admitted(finding);
  const std::string rule = ways.front()->name;
  const auto by_rule = [&](std::string_view why) {
    finding.reason = fmt::format("by rule{}", why);
    return rule;
  };
  const bool stored = tuning_ == Tuning::on;
  if (tuning_ == Tuning::off || (stored && ways.size() == 1)) return by_rule("");
  const std::string key = note_key(choice.key, context_.capabilities(), target_);
  const auto kept = [&](const std::string& name) {
    const bool usable = std::ranges::any_of(ways, [&](const Finding::Way* way) { return way->name == name; });
    if (!usable) return by_rule("");
    finding.reason = "kept";
    return name;
  };
  if (const auto noted = notes_.find(key); noted && stored) return kept(*noted);
  if (stored && !notes_.save()) return by_rule("");
  const Finding::Way& best = measured(choice, finding);
  if (!std::isfinite(best.microseconds)) return by_rule(", with no memory to measure");
  for (const Finding::Way* way : ways) hindered |= !std::isfinite(way->microseconds);
  if (hindered) return best.name;
  notes_.add(key, best.name);
  if (stored && !notes_.save()) return by_rule(", as what was measured cannot be stored");
  const std::string noted = notes_.find(key).value_or("");  // another process may have been faster
  return noted == best.name ? noted : kept(noted);
}

/// The fastest, or the rule's; the reason is stored in `finding`.
const Finding::Way& Tuner::measured(const plan::Choice& choice, Finding& finding) {
  const std::vector<Finding::Way*> ways = admitted(finding);
  const Finding::Way* best = ways.front();
  finding.reason = "measured";
  for (Finding::Way* way : ways) {
    if (out_of_time()) {
      finding.reason = "by rule, with no time left to measure";
      return *ways.front();
    }
    way->microseconds = time(choice, way->name);
    const double to_beat = best->microseconds * (best == ways.front() ? 1 - least_gain : 1);
    if (way->microseconds < to_beat) best = way;
  }
  return *best;
}

/// Settles what a trial leaves open, such as the products of layers that are computed one by one: what is timed is what
/// will be used, and has been checked.
void Tuner::settle_within(const plan::Choice& choice, plan::Target& target) {
  const auto left_open = [&] {
    std::vector<plan::Choice> choices = lowered(choice.problem, target).program.choices;
    std::erase_if(choices, [&](const plan::Choice& each) { return each.kind == choice.kind; });
    return choices;
  };
  while (settle(left_open(), target)) {
  }
}

/// The minimum of a few runs after the first, which may compile; infinite if there is not enough memory.
double Tuner::time(const plan::Choice& choice, const std::string& candidate) {
  constexpr int most_runs = 5;
  constexpr std::chrono::milliseconds enough(30);
  plan::Target target = ops::with_candidate(target_, choice.kind, candidate);
  double best = std::numeric_limits<double>::infinity();
  try {
    settle_within(choice, target);
    TrialRun run(context_, pipelines_, target, choice.problem);
    run.run();
    const Clock::time_point end = Clock::now() + enough;
    for (int i = 0; i < most_runs && (i == 0 || Clock::now() < end); ++i) best = std::min(best, run.run());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled || error.code() == ErrorCode::device_lost) throw;
  }
  return best;
}

bool Tuner::out_of_time() const {
  return tuning_ == Tuning::on && Clock::now() > end_;
}

}  // namespace halfstep::tune
