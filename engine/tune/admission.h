#pragma once

#include <map>
#include <string>
#include <string_view>

#include "plan/choice.h"
#include "vk/device/notes.h"
#include "vk/shader/pipelines.h"

namespace halfstep::tune {

/// Runs the checks of choices of `kind` with the candidate called `name`, which must compute one of them at least.
/// Returns what was wrong, or an empty text.
/// Throws Error for what does not depend on the candidate: without memory, and if the compilation is cancelled.
std::string check(vk::Context& context, vk::Pipelines& pipelines, const std::string& kind, const std::string& name);

/// The same in a child process, for "device index, kind, name" as lines. Returns "right" instead of an empty text.
std::string check_in_child(std::string_view argument);

/// Checks whether candidates compute correct results on a device. A driver's own claims are not trusted.
class Admission {
 public:
  /// Verdicts are stored in `notes`. With `recheck`, earlier ones are ignored. Risky candidates are passed to `child`
  /// as `work`.
  Admission(vk::Context& context, vk::Pipelines& pipelines, vk::Notes& notes, bool recheck, process::Child* child,
            process::Child::Work work = check_in_child)
      : context_(context), pipelines_(pipelines), notes_(notes), recheck_(recheck), child_(child), work_(work) {}

  /// Why a candidate for choices of `kind` may not be used; empty if it may. A risky one is first run in a child
  /// process.
  std::string objection(const std::string& kind, const plan::Candidate& candidate);

 private:
  std::string find_out(const std::string& kind, const plan::Candidate& candidate, bool& lasting);

  vk::Context& context_;
  vk::Pipelines& pipelines_;
  vk::Notes& notes_;
  bool recheck_;
  process::Child* child_;
  process::Child::Work work_;
  std::map<std::string, std::string> verdicts_;  ///< of this process
};

}  // namespace halfstep::tune
