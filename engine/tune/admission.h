#pragma once

#include <halfstep/error.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "plan/choice.h"
#include "vk/device/notes.h"
#include "vk/shader/pipelines.h"

namespace halfstep::tune {

/// Runs the checks of choices of `kind` with the candidate called `name`, which must compute one of them at least.
/// `target` is the context's, except for who rounds to f16.
/// Returns what was wrong, or an empty text.
/// Throws Error for what does not depend on the candidate: without memory, if the compilation is cancelled, and if the
/// device is lost.
std::string check(vk::Context& context, vk::Pipelines& pipelines, const plan::Target& target, const std::string& kind,
                  const std::string& name);

/// The same in a child process, for a request_of(). Returns "right" instead of an empty text, and for what does not
/// depend on the candidate, a text that begins with "?". Throws nothing.
std::string check_in_child(std::string_view request);
std::string request_of(const vk::Context& context, const plan::Target& target, const std::string& kind,
                       const std::string& name);

/// What is known of a candidate.
struct Verdict {
  std::string objection{};  ///< why it may not be used; empty if it may
  /// What kept it from being judged. It may not be used now, but another time there may be memory, or a process.
  std::optional<ErrorCode> hindrance{};
};

/// Checks whether candidates compute correct results on a device. A driver's own claims are not trusted.
class Admission {
 public:
  /// Verdicts are stored in `notes`. With `recheck`, earlier ones are ignored. Risky candidates are passed to `child`
  /// as `work`.
  Admission(vk::Context& context, vk::Pipelines& pipelines, vk::Notes& notes, bool recheck, process::Child* child,
            process::Child::Work work = check_in_child)
      : context_(context), pipelines_(pipelines), notes_(notes), recheck_(recheck), child_(child), work_(work) {}

  /// Of a candidate for choices of `kind`, compiled for `target`: the context's, except for who rounds to f16. A risky
  /// candidate is first run in a child process. Throws Error if the compilation is cancelled or the device is lost.
  const Verdict& verdict(const plan::Target& target, const std::string& kind, const plan::Candidate& candidate);

 private:
  Verdict find_out(const plan::Target& target, const std::string& kind, const plan::Candidate& candidate);
  Verdict find_out_in_child(const plan::Target& target, const std::string& kind, const std::string& name);

  vk::Context& context_;
  vk::Pipelines& pipelines_;
  vk::Notes& notes_;
  bool recheck_;
  process::Child* child_;
  process::Child::Work work_;
  std::map<std::string, Verdict> verdicts_;  ///< of this process
};

}  // namespace halfstep::tune
