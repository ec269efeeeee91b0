#pragma once

#include <halfstep/device.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "step/step_program.h"
#include "tune/admission.h"

namespace halfstep::tune {

/// The result of settling a choice.
struct Finding {
  struct Way {
    std::string name;
    std::string objection;    ///< why it may not be used; empty if it may
    double microseconds = 0;  ///< time on the problem; 0 if it was not measured
  };
  std::string key;
  std::vector<Way> ways;
  std::string chosen;
  std::string reason;
};

/// Settles the choices that a program left open, for one device. A result is stored between processes, since another
/// choice would give other bits. If nothing can be stored, only the fixed rule decides.
class Tuner {
 public:
  /// Nothing is stored if `cache_folder` is empty.
  Tuner(vk::Context& context, vk::Pipelines& pipelines, Tuning tuning, const std::filesystem::path& cache_folder);
  /// As the device's settings say.
  Tuner(vk::Context& context, vk::Pipelines& pipelines);
  ~Tuner() { notes_.save(); }
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  /// Settles the choices of a program that was lowered for `target`, the context's with who rounds to f16 settled, and
  /// adds those that differ from the first candidate to it. Returns whether there were any, in which case the program
  /// must be lowered again. Where the rule is not known to be right, a lone candidate is checked too. Throws Error if
  /// no candidate is correct, with the code of what kept one from being judged, if any.
  bool settle(std::span<const plan::Choice> choices, plan::Target& target);

  /// The program that `lower` makes for a target, with its choices and who rounds to f16 settled; by rule where the
  /// target is reproducible, which is the same on every device. Blocks while something is checked or measured.
  step::StepProgram settled(plan::Target& target, const std::function<step::StepProgram(const plan::Target&)>& lower);
  /// Lets the driver round to f16 where it promises to do as Halfstep does, and did on this device.
  void settle_rounding(plan::Target& target);

  const std::vector<Finding>& findings() const { return findings_; }

 private:
  std::string chosen(const plan::Choice& choice);
  /// `hindered`: a check or a time is missing, for want of memory. What is chosen then is not kept.
  std::string decided(const plan::Choice& choice, Finding& finding, bool hindered);
  const Finding::Way& measured(const plan::Choice& choice, Finding& finding);
  void settle_within(const plan::Choice& choice, plan::Target& target);
  double time(const plan::Choice& choice, const std::string& candidate);
  bool out_of_time() const;

  vk::Context& context_;
  vk::Pipelines& pipelines_;
  Tuning tuning_;
  vk::Notes notes_;
  Admission admission_;
  plan::Target target_;                         ///< the context's, with who rounds to f16 as the program has it
  std::map<std::string, std::string> settled_;  ///< what was chosen, by the choice's key
  std::vector<Finding> findings_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace halfstep::tune
