#include "samples/common/contact_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "samples/common/canvas.h"

namespace samples {
namespace {

constexpr Colour page{236, 238, 241};
constexpr Colour card{255, 255, 255};
constexpr Colour edge{208, 212, 218};
constexpr Colour ink{32, 36, 44};
constexpr Colour pale_ink{112, 118, 128};
constexpr Colour track{241, 243, 246};
constexpr Colour best_bar{140, 196, 150};
constexpr Colour plain_bar{196, 214, 236};

constexpr int margin = 12;        ///< around and inside cards
constexpr int bar_height = 24;    ///< including its text
constexpr int bar_step = 28;      ///< from one bar to the next
constexpr int wanted_side = 224;  ///< of an image on its card, in pixels
constexpr int most_guesses = 3;   ///< guesses on a card

/// The layout of a card.
struct Card {
  int scale;  ///< of the image's pixels
  int image_height;
  int image_width;
  int width;
  int height;

  explicit Card(const halfstep::Shape& image) {
    const auto rows = static_cast<int>(image[0]);
    const auto columns = static_cast<int>(image[1]);
    scale = std::max(1, wanted_side / std::max(rows, columns));
    image_height = rows * scale;
    image_width = columns * scale;
    width = std::max(image_width, wanted_side) + 2 * margin;
    height = image_height + Canvas::line + most_guesses * bar_step + 3 * margin;
  }
};

/// Text truncated to at most `room` pixels.
std::string fitted(const std::string& text, int room) {
  const auto most = static_cast<std::size_t>(std::max(room / Canvas::letter, 3));
  return text.size() <= most ? text : text.substr(0, most - 2) + "..";
}

void draw_guess(Canvas& canvas, int x, int y, int width, const Guess& guess, bool best) {
  canvas.rectangle(x, y, width, bar_height, track);
  const double share = std::isfinite(guess.probability) ? guess.probability : 0;
  canvas.rectangle(x, y, static_cast<int>(std::lround(share * width)), bar_height, best ? best_bar : plain_bar);
  const std::string percent = fmt::format("{:.0f}%", 100 * guess.probability);
  const int percent_width = static_cast<int>(percent.size()) * Canvas::letter;
  canvas.text(x + 4, y + 5, fitted(guess.name, width - percent_width - 16), ink);
  canvas.text(x + width - percent_width - 2, y + 5, percent, ink);
}

}  // namespace

std::pair<int, int> write_contact_sheet(const std::filesystem::path& path, const halfstep::Dataset& images,
                                        const std::vector<std::string>& names,
                                        const std::vector<std::vector<Guess>>& guesses) {
  const halfstep::Shape& shape = images.sample_shape;
  const Card layout(shape);
  const auto count = static_cast<int>(guesses.size());
  const int columns = std::clamp(static_cast<int>(std::ceil(std::sqrt(1.4 * count))), 1, 8);
  const int lines = (count + columns - 1) / columns;
  Canvas canvas(margin + columns * (layout.width + margin), margin + lines * (layout.height + margin), page);
  for (int i = 0; i < count; ++i) {
    const auto sample = static_cast<std::size_t>(i);
    const int x = margin + i % columns * (layout.width + margin);
    int y = margin + i / columns * (layout.height + margin);
    canvas.rectangle(x - 1, y - 1, layout.width + 2, layout.height + 2, edge);
    canvas.rectangle(x, y, layout.width, layout.height, card);
    y += margin;
    canvas.image(x + (layout.width - layout.image_width) / 2, y,
                 images.samples.data() + sample * static_cast<std::size_t>(images.sample_bytes()),
                 static_cast<int>(shape[0]), static_cast<int>(shape[1]), static_cast<int>(shape[2]), layout.scale);
    y += layout.image_height + margin;
    const int inner = layout.width - 2 * margin;
    canvas.text(x + margin, y, fitted(names[sample], inner), pale_ink);
    y += Canvas::line + margin / 2;
    const std::size_t most = std::min<std::size_t>(most_guesses, guesses[sample].size());
    for (std::size_t k = 0; k < most; ++k, y += bar_step) {
      draw_guess(canvas, x + margin, y, inner, guesses[sample][k], k == 0);
    }
  }
  halfstep::write_png(path, canvas.pixels(), canvas.height(), canvas.width());
  return {canvas.width(), canvas.height()};
}

}  // namespace samples
