#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tune/admission.h"

namespace halfstep::tune {

enum class Mode : std::uint8_t {
  off,    ///< the first candidate that is admitted
  on,     ///< the fastest of the first few, measured once and kept from then on
  force,  ///< measured and admitted anew, without a limit of time and where the rule is known too
};

/// HALFSTEP_TUNE: off, on or force; on where it is not set. Throws Error where it is anything else.
Mode mode();

/// What was found out about a choice.
struct Finding {
  struct Way {
    std::string name;
    std::string objection;    ///< why it may not be used; empty where it may
    double microseconds = 0;  ///< of the problem; 0 where it was not measured
  };
  std::string key;
  std::vector<Way> ways;
  std::string chosen;
  std::string reason;
};

/// Makes the choices that a program left open, for one device. A choice once made is kept between processes, since
/// another would give other bits; where nothing is kept, the rule alone decides.
class Tuner {
 public:
  Tuner(vk::Context& context, vk::Pipelines& pipelines, Mode mode);
  ~Tuner() { notes_.save(); }
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  /// Makes choices, and puts those that are not the first candidate into `target`. Returns whether there were any, so
  /// that the program must be lowered again. Throws Error where no candidate is right.
  bool settle(std::span<const plan::Choice> choices, plan::Target& target);

  const std::vector<Finding>& findings() const { return findings_; }

 private:
  void settle(const plan::Choice& choice);
  std::string measured(const plan::Choice& choice, Finding& finding);
  double time(const plan::Choice& choice, const std::string& candidate);
  bool out_of_time() const;

  vk::Context& context_;
  vk::Pipelines& pipelines_;
  Mode mode_;
  vk::Notes notes_;
  Admission admission_;
  std::set<std::string> settled_;
  std::vector<Finding> findings_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace halfstep::tune
