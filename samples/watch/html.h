#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace samples {

/// A cell of a table: text, and where `share` is not negative, a bar behind it of that share of the cell, 0 to 1.
struct Cell {
  std::string text;
  double share = -1;
  std::string hint{};  ///< shown under the mouse
};

/// A table with its heading. The first column is text, the others are numbers, aligned to the right.
std::string html_table(const std::vector<std::string>& head, const std::vector<std::vector<Cell>>& rows);
/// What is folded away until a reader asks for it; `inner` is HTML.
std::string html_details(std::string_view summary, std::string_view inner);
/// A part of a page with its title; nothing where `inner`, which is HTML, is empty.
std::string html_section(std::string_view title, std::string_view inner);
/// A whole page; `inner` is HTML.
std::string html_page(std::string_view title, std::string_view inner);
/// Bytes of a file as a data URL.
std::string data_url(std::string_view type, std::string_view bytes);

}  // namespace samples
