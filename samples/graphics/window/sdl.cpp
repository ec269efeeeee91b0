#define SDL_MAIN_HANDLED
#include <SDL.h>
#include <fmt/format.h>

#include "samples/graphics/window.h"

using namespace halfstep;

namespace samples {
namespace {

template <typename T>
T* made(T* object, const char* what) {
  if (object == nullptr) fail(ErrorCode::system, "window", fmt::format("expected {}, got: {}", what, SDL_GetError()));
  return object;
}

/// SDL, while there is a window. The program's own handlers of signals stay.
struct Library {
  Library() {
    SDL_SetMainReady();
    SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
    if (SDL_Init(SDL_INIT_VIDEO) == 0) return;
    fail(ErrorCode::system, "window", fmt::format("expected a display, got: {}", SDL_GetError()));
  }
  ~Library() { SDL_Quit(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

template <auto destroy>
struct Destroyed {
  template <typename T>
  void operator()(T* object) const {
    destroy(object);
  }
};

}  // namespace

bool has_windows() {
  return true;
}

class Window::Impl {
 public:
  Impl(const std::string& title, int width, int height)
      : width_(width),
        window_(made(SDL_CreateWindow(title.c_str(), SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, width, height,
                                      SDL_WINDOW_RESIZABLE),
                     "a window")),
        renderer_(made(SDL_CreateRenderer(window_.get(), -1, SDL_RENDERER_SOFTWARE), "a renderer")),
        texture_(
            made(SDL_CreateTexture(renderer_.get(), SDL_PIXELFORMAT_RGB24, SDL_TEXTUREACCESS_STREAMING, width, height),
                 "a texture")) {
    SDL_RenderSetLogicalSize(renderer_.get(), width, height);
    SDL_SetRenderDrawColor(renderer_.get(), 128, 128, 128, 255);
    draw();
  }

  void show(const Image& image, const std::string& title) {
    SDL_UpdateTexture(texture_.get(), nullptr, image.pixels.data(), 3 * width_);
    SDL_SetWindowTitle(window_.get(), title.c_str());
    has_image_ = true;
    draw();
  }

  bool is_open() {
    SDL_Event event;
    while (SDL_PollEvent(&event) != 0) {
      const bool escape = event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_ESCAPE;
      if (event.type == SDL_QUIT || escape) open_ = false;
      if (event.type == SDL_WINDOWEVENT) draw();
    }
    return open_;
  }

 private:
  void draw() {
    SDL_RenderClear(renderer_.get());
    if (has_image_) SDL_RenderCopy(renderer_.get(), texture_.get(), nullptr, nullptr);
    SDL_RenderPresent(renderer_.get());
  }

  Library library_;
  int width_;
  std::unique_ptr<SDL_Window, Destroyed<SDL_DestroyWindow>> window_;
  std::unique_ptr<SDL_Renderer, Destroyed<SDL_DestroyRenderer>> renderer_;
  std::unique_ptr<SDL_Texture, Destroyed<SDL_DestroyTexture>> texture_;
  bool has_image_ = false;
  bool open_ = true;
};

Window::Window(const std::string& title, std::int64_t width, std::int64_t height)
    : impl_(std::make_unique<Impl>(title, static_cast<int>(width), static_cast<int>(height))) {}
Window::~Window() = default;

void Window::show(const Image& image, const std::string& title) {
  impl_->show(image, title);
}

bool Window::is_open() {
  return impl_->is_open();
}

}  // namespace samples
