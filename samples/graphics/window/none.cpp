#include "samples/graphics/window.h"

using namespace halfstep;

namespace samples {

bool has_windows() {
  return false;
}

class Window::Impl {};

Window::Window(const std::string& /*title*/, std::int64_t /*width*/, std::int64_t /*height*/) {
  fail(ErrorCode::unsupported, "window", "expected a build with windows, got one without",
       "-DHALFSTEP_WINDOW=ON builds with SDL");
}
Window::~Window() = default;

void Window::show(const Image& /*image*/, const std::string& /*title*/) {}

bool Window::is_open() {
  return false;
}

}  // namespace samples
