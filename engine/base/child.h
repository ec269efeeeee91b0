#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace halfstep::process {

/// A fork of this process that waits for work that may crash. It is created before the graphics drivers are loaded,
/// because they do not survive a fork. It prints nothing on the terminal, has none of the process's files open, and
/// ends with this object. Several threads may use it: one waits for the work of another. In other processes that are
/// forked from this one, it is not alive.
class Child {
 public:
  /// A function of this program.
  using Work = std::string (*)(std::string_view argument);
  /// What became of work.
  struct Outcome {
    std::optional<std::string> answer{};  ///< what it returned; nothing if it did not return
    /// Whether it ended the process: by a fault's signal, or as an exit with a failure. False where it threw or took
    /// too long, and where something else ended the process, such as Ctrl-C or a system without memory. Of an exit,
    /// also false where the application ignores SIGCHLD, or waits for any process that ends: nobody knows of it then.
    bool crashed = false;
  };

  Child();
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Runs `work` in the child, for `limit` at most. The child is gone after work without an answer, and later calls
  /// have none. There is none on platforms without fork.
  Outcome run(Work work, std::string_view argument, std::chrono::milliseconds limit);
  /// Whether it can still run work.
  bool alive();
  /// Whether this process is such a child.
  static bool inside();

 private:
  /// Returns the status that waitpid() tells; 0 if there is none.
  int end() noexcept;
  bool is_parent() const;

  std::mutex mutex_;
  int socket_ = -1;
  int process_ = -1;
  int parent_ = -1;  ///< the process that made it
};

}  // namespace halfstep::process
