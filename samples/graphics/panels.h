#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>
#include <string>
#include <vector>

namespace samples {

/// A picture on a sheet.
struct Panel {
  halfstep::Image image;
  std::string caption;
};

/// Writes pictures of one size, with their captions, `columns` in a line, as a PNG file. Throws Error if it cannot.
void write_panels(const std::filesystem::path& path, const std::vector<Panel>& panels, int columns);

/// Every `factor`th pixel along both axes, the mean of those around it.
halfstep::Image reduced(const halfstep::Image& image, std::int64_t factor);

}  // namespace samples
