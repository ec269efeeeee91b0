#pragma once

#include <map>
#include <string>
#include <string_view>

#include "plan/choice.h"
#include "vk/device/notes.h"
#include "vk/shader/pipelines.h"

namespace halfstep::tune {

/// Runs the checks of choices of `kind` with the candidate called `name`: what was wrong, or nothing.
std::string check(vk::Context& context, vk::Pipelines& pipelines, const std::string& kind, const std::string& name);

/// The same in a child, for "device index, kind, name" in lines. Says "right" rather than nothing.
std::string check_in_child(std::string_view argument);

/// Whether candidates compute what they claim on a device. What a driver says of itself is not believed.
class Admission {
 public:
  /// Verdicts go to `notes`. With `again`, earlier ones are not asked for. What is risky is given to `child` as `work`.
  Admission(vk::Context& context, vk::Pipelines& pipelines, vk::Notes& notes, bool again, process::Child* child,
            process::Child::Work work = check_in_child)
      : context_(context), pipelines_(pipelines), notes_(notes), again_(again), child_(child), work_(work) {}

  /// Why a candidate for choices of `kind` may not be used; empty where it may. A risky one is first run in a child.
  std::string objection(const std::string& kind, const plan::Candidate& candidate);

 private:
  std::string find_out(const std::string& kind, const plan::Candidate& candidate, bool& lasting);

  vk::Context& context_;
  vk::Pipelines& pipelines_;
  vk::Notes& notes_;
  bool again_;
  process::Child* child_;
  process::Child::Work work_;
  std::map<std::string, std::string> verdicts_;  ///< of this process
};

}  // namespace halfstep::tune
