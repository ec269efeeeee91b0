#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace halfstep::process {

/// A copy of this process as it is now, that waits to be given what may crash. It is made before the graphics drivers
/// are loaded: they do not survive being copied. It says nothing on the terminal and dies with this object.
class Child {
 public:
  /// A function of this program.
  using Work = std::string (*)(std::string_view argument);

  Child();
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// What `work` returns in the copy. Nothing where it crashed, threw, or took longer than `limit`; the copy is gone
  /// then, and from now on there is nothing. Nothing where the platform has no such copies.
  std::optional<std::string> run(Work work, std::string_view argument, std::chrono::milliseconds limit);
  /// Whether it can still be given work.
  bool alive() const { return socket_ >= 0; }
  /// Whether this process is such a copy.
  static bool inside();

 private:
  void end() noexcept;

  int socket_ = -1;
  int process_ = -1;
};

}  // namespace halfstep::process
