#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace halfstep::process {

/// A fork of this process that waits for work that may crash. It is created before the graphics drivers are loaded,
/// because they do not survive a fork. It prints nothing on the terminal and ends with this object. Several threads may
/// use it: one waits for the work of another.
class Child {
 public:
  /// A function of this program.
  using Work = std::string (*)(std::string_view argument);

  Child();
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Returns what `work` returns in the child. Returns nothing if it crashed, threw, or took longer than `limit`; the
  /// child is then gone, and later calls also return nothing. Returns nothing on platforms without fork.
  std::optional<std::string> run(Work work, std::string_view argument, std::chrono::milliseconds limit);
  /// Whether it can still run work.
  bool alive();
  /// Whether this process is such a child.
  static bool inside();

 private:
  void end() noexcept;

  std::mutex mutex_;
  int socket_ = -1;
  int process_ = -1;
};

}  // namespace halfstep::process
