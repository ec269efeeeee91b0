#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace halfstep::selftest {

/// How a process ended.
struct Ended {
  int code = -1;   ///< its exit status; -1 if it was ended by a signal or by the limit
  int signal = 0;  ///< that ended it
  bool too_long = false;
  std::string output;  ///< the end of what it printed
};

/// Runs this program with other arguments, and ends it after `limit`. Throws Error if it cannot be started.
Ended run_self(const std::vector<std::string>& arguments, std::chrono::seconds limit);

}  // namespace halfstep::selftest
