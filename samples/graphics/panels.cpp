#include "samples/graphics/panels.h"

#include <algorithm>

#include "samples/common/canvas.h"

using namespace halfstep;

namespace samples {

Image reduced(const Image& image, std::int64_t factor) {
  Image small{image.height / factor, image.width / factor, {}};
  for (std::int64_t row = 0; row < small.height; ++row) {
    for (std::int64_t at = 0; at < 3 * small.width; ++at) {
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < factor * factor; ++i) {
        const std::int64_t y = row * factor + i / factor;
        const std::int64_t x = at / 3 * factor + i % factor;
        sum += image.pixels[static_cast<std::size_t>((y * image.width + x) * 3 + at % 3)];
      }
      small.pixels.push_back(static_cast<std::uint8_t>(sum / (factor * factor)));
    }
  }
  return small;
}

void write_panels(const std::filesystem::path& path, const std::vector<Panel>& panels, int columns) {
  constexpr int margin = 12;
  const auto width = static_cast<int>(panels[0].image.width);
  const auto height = static_cast<int>(panels[0].image.height);
  const auto count = static_cast<int>(panels.size());
  columns = std::min(count, columns);
  const int lines = (count + columns - 1) / columns;
  int letters = 0;
  for (const Panel& panel : panels) letters = std::max(letters, static_cast<int>(panel.caption.size()));
  const int card_width = std::max(width, letters * Canvas::letter);
  const int card_height = height + Canvas::line + margin;
  Canvas canvas(margin + columns * (card_width + margin), margin + lines * (card_height + margin), {250, 250, 251});
  for (int i = 0; i < count; ++i) {
    const int x = margin + i % columns * (card_width + margin);
    const int y = margin + i / columns * (card_height + margin);
    const Panel& panel = panels[static_cast<std::size_t>(i)];
    canvas.image(x, y, panel.image.pixels.data(), height, width, 3, 1);
    canvas.text(x, y + height + margin / 2, panel.caption, {32, 36, 44});
  }
  write_png(path, canvas.pixels(), canvas.height(), canvas.width());
}

}  // namespace samples
