#pragma once

#include <halfstep/halfstep.h>

#include <memory>
#include <string>

namespace samples {

/// Whether this build can show windows: -DHALFSTEP_WINDOW=ON.
bool has_windows();

/// A window that shows a picture.
class Window {
 public:
  /// Shows a grey window for pictures {height, width, 3}. Throws Error if there is no display, or has_windows() is
  /// false.
  Window(const std::string& title, std::int64_t width, std::int64_t height);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// Shows a picture of the size that the window was made for, scaled to what its user made of it.
  void show(const halfstep::Image& image, const std::string& title);
  /// Answers what the user does; to be called often. False once the window is closed, or Escape was pressed.
  bool is_open();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace samples
