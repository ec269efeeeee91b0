#include "samples/watch/step_picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "samples/watch/drawing.h"

namespace samples {
namespace {

using halfstep::DType;
using halfstep::PlannedDispatch;
using halfstep::PlannedStep;

constexpr double box_width = 370;         ///< of a box
constexpr std::size_t most_letters = 45;  ///< of a name in it
constexpr double line = 16;               ///< of text
constexpr double box_gap = 20;            ///< between boxes of a column
constexpr double alley = 110;             ///< between columns
constexpr double page_margin = 60;
constexpr double head = 96;

const char* colour_of(DType type) {
  switch (type) {
    case DType::f32:
      return "#cfe3f7";
    case DType::f16:
      return "#ffdcae";
    case DType::bf16:
      return "#d9efc6";
    default:
      return "#e4e4ea";
  }
}

std::string size_text(std::uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (size < 1e3) return fmt::format("{} B", bytes);
  return size < 1e6 ? fmt::format("{:.3g} KB", size / 1e3) : fmt::format("{:.3g} MB", size / 1e6);
}

/// Dispatches of the same operators that follow each other.
struct Placed {
  StepBox box;
  std::size_t dispatches = 1;
  bool recomputed = false;
  double x = 0;
  double y = 0;
  std::size_t column = 0;
  std::size_t place = 0;  ///< in its column, in the order of the step

  double height() const { return line * static_cast<double>(box.operators.size() + 1) + 10; }
};

std::size_t column_of(const PlannedDispatch& dispatch) {
  if (dispatch.phase == "update") return 2;
  return dispatch.phase == "backward" ? 1 : 0;
}

/// The boxes, and of each dispatch the box that it is in.
struct Picture {
  std::vector<Placed> boxes;
  std::vector<std::size_t> of_dispatch;
  double height = 0;
};

void tell_dispatches(Placed& box) {
  if (box.dispatches == 1) return;
  const bool named = box.box.operators.front().find('/') != std::string::npos;
  box.box.result +=
      named ? fmt::format(", in {} dispatches", box.dispatches) : fmt::format(", and {} more", box.dispatches - 1);
}

/// Forward and update from the top down, backward from the bottom up, so that layers are about level.
Picture placed(const PlannedStep& step) {
  Picture picture;
  std::vector<Placed>& boxes = picture.boxes;
  for (const PlannedDispatch& dispatch : step.dispatches) {
    StepBox box = box_of(step, dispatch);
    const std::size_t column = column_of(dispatch);
    if (!boxes.empty() && boxes.back().column == column && boxes.back().box.operators == box.operators) {
      boxes.back().box = std::move(box);  // the last result is the operator's
      ++boxes.back().dispatches;
    } else {
      boxes.push_back({.box = std::move(box), .recomputed = dispatch.recomputed, .column = column});
    }
    picture.of_dispatch.push_back(boxes.size() - 1);
  }
  std::array<double, 3> used{};
  std::array<std::size_t, 3> counts{};
  for (Placed& box : boxes) {
    tell_dispatches(box);
    box.place = counts[box.column]++;
    box.x = page_margin + static_cast<double>(box.column) * (box_width + alley);
    box.y = used[box.column];
    used[box.column] += box.height() + box_gap;
  }
  const double most = *std::ranges::max_element(used);
  for (Placed& box : boxes) box.y = head + (box.column == 1 ? most - box.y - box.height() - box_gap : box.y);
  picture.height = head + most + page_margin / 2;
  return picture;
}

void add_edge(std::string& text, const Placed& from, const Placed& to) {
  const auto path = [&](double x0, double y0, double bend0, double bend1, double x1, double y1, const char* kind) {
    fmt::format_to(std::back_inserter(text),
                   "<path class='{}' d='M{:.0f},{:.0f}C{:.0f},{:.0f} {:.0f},{:.0f} {:.0f},{:.0f}'/>\n", kind, x0, y0,
                   bend0, y0, bend1, y1, x1, y1);
  };
  const double middle0 = from.y + from.height() / 2;
  const double middle1 = to.y + to.height() / 2;
  if (from.column != to.column) {
    const bool right = to.column > from.column;
    const double x0 = right ? from.x + box_width : from.x;
    const double x1 = right ? to.x : to.x + box_width;
    path(x0, middle0, (x0 + x1) / 2, (x0 + x1) / 2, x1, middle1, "across");
  } else if (to.place == from.place + 1) {
    const bool down = to.y > from.y;
    const double x = from.x + box_width / 2;
    path(x, down ? from.y + from.height() : from.y, x, x, x, down ? to.y : to.y + to.height(), "next");
  } else {  // past others
    const double bend = from.x - std::min(46.0, 12 + 4.0 * std::sqrt(std::abs(middle1 - middle0)) / 4);
    path(from.x, middle0, bend, bend, to.x, middle1, "past");
  }
}

void add_box(std::string& text, const Placed& box) {
  const auto add = [&](double y, double height, const char* what, const std::string& colour) {
    fmt::format_to(std::back_inserter(text),
                   "<rect class='{}' x='{:.0f}' y='{:.0f}' width='{:.0f}' height='{:.0f}' rx='4' fill='{}'/>\n", what,
                   box.x, y, box_width, height, colour);
  };
  const bool fused = box.box.operators.size() > 1;
  add(box.y, box.height(), fused ? "fused" : (box.recomputed ? "again" : "one"), box.box.colour);
  double y = box.y + line;
  for (std::size_t i = 0; i < box.box.operators.size(); ++i, y += line) {
    if (i > 0) {
      fmt::format_to(std::back_inserter(text), "<path class='part' d='M{:.0f},{:.0f}h{:.0f}'/>\n", box.x, y - line + 4,
                     box_width);
    }
    fmt::format_to(std::back_inserter(text), "<text class='name' x='{:.0f}' y='{:.0f}'>{}</text>\n", box.x + 10, y,
                   escaped(shortened(box.box.operators[i], most_letters)));
  }
  fmt::format_to(std::back_inserter(text), "<text class='result' x='{:.0f}' y='{:.0f}'>{}</text>\n", box.x + 10, y,
                 escaped(box.box.result));
}

std::string heading(double width_of_all, double height) {
  std::string text = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' viewBox='0 0 {0:.0f} "
      "{1:.0f}'>\n<style>\n"
      "text{{font-family:system-ui,Helvetica,Arial,sans-serif;font-size:12px;fill:#1f2430}}.result{{fill:#4b5563;"
      "font-size:11px}}.name{{font-weight:600}}.head{{font-size:16px;font-weight:600}}\n"
      "path{{fill:none;stroke:#55606f;stroke-width:1.3}}path.next{{stroke-width:2}}path.across,path.past{{stroke:#"
      "a9b4c4}}"
      "path.part{{stroke:#8b95a5;stroke-width:.7}}path.across:hover,path.past:hover{{stroke:#d9480f;stroke-width:3}}\n"
      "rect{{stroke:#7b8696}}rect.fused{{stroke:#1f2430;stroke-width:2.2}}rect.again{{stroke-dasharray:4 3}}\n"
      "rect.page{{fill:#fff;stroke:none}}@media (prefers-color-scheme:dark){{rect.page{{fill:#14171d}}"
      ".head,.key{{fill:#e8ebf1}}path{{stroke:#9aa4b5}}path.across,path.past{{stroke:#4a5566}}path.part{{stroke:#"
      "8b95a5}}"
      "rect.fused{{stroke:#f4f6fa;stroke-width:3}}}}\n</style>\n"
      "<rect class='page' width='{0:.0f}' height='{1:.0f}'/>\n",
      width_of_all, height);
  const char* titles[] = {"forward", "backward, upwards", "update"};
  for (int i = 0; i < 3; ++i) {
    fmt::format_to(std::back_inserter(text), "<text class='head' x='{:.0f}' y='{:.0f}'>{}</text>\n",
                   page_margin + i * (box_width + alley), head - 18, titles[i]);
  }
  double x = page_margin;
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::u32}) {
    fmt::format_to(std::back_inserter(text),
                   "<rect x='{:.0f}' y='24' width='16' height='16' rx='3' fill='{}'/><text class='key' x='{:.0f}' "
                   "y='37'>{}</text>\n",
                   x, colour_of(type), x + 22, type == DType::u32 ? "u32, bytes" : halfstep::name(type));
    x += type == DType::u32 ? 110 : 70;
  }
  fmt::format_to(std::back_inserter(text),
                 "<rect class='fused' x='{0:.0f}' y='24' width='16' height='16' rx='3' fill='none'/><text class='key' "
                 "x='{1:.0f}' y='37'>operators in one dispatch</text>\n",
                 x, x + 22);
  return text;
}

}  // namespace

StepBox box_of(const PlannedStep& step, const PlannedDispatch& dispatch) {
  StepBox box;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 3) {
    end = dispatch.label.find(" + ", begin);
    box.operators.push_back(dispatch.label.substr(begin, end - begin));
  }
  if (dispatch.recomputed) box.operators.front() += " (recomputed)";
  box.colour = "#e4e4ea";
  if (dispatch.writes.empty()) return box;
  const halfstep::PlannedTensor& tensor = step.tensors[dispatch.writes.front()];
  if (tensor.shape.empty()) {
    box.result = fmt::format("{}, {}", tensor.name, size_text(tensor.bytes));
    return box;
  }
  // An operator without a name of its own is told by what it makes, as the gradient of a parameter is.
  const bool named = box.operators.front().find('/') != std::string::npos;
  if (!named && tensor.name.find('/') != std::string::npos) box.result = shortened(tensor.name, 30) + ": ";
  box.result += fmt::format("{} {{{}}}, {}", halfstep::name(tensor.dtype), fmt::join(tensor.shape, ", "),
                            size_text(tensor.bytes));
  box.colour = colour_of(tensor.dtype);
  return box;
}

std::vector<std::size_t> sources_of(const PlannedStep& step, std::size_t index) {
  std::set<std::size_t> sources;
  for (const PlannedDispatch::Read& read : step.dispatches[index].reads) {
    if (read.from >= 0 && step.tensors[read.tensor].buffer != "state") {
      sources.insert(static_cast<std::size_t>(read.from));
    }
  }
  return {sources.begin(), sources.end()};
}

std::string step_picture(const PlannedStep& step) {
  const Picture picture = placed(step);
  const std::vector<Placed>& boxes = picture.boxes;
  std::string text = heading(2 * page_margin + 3 * box_width + 2 * alley, picture.height);
  std::set<std::pair<std::size_t, std::size_t>> edges;
  for (std::size_t i = 0; i < step.dispatches.size(); ++i) {
    for (const std::size_t from : sources_of(step, i)) edges.emplace(picture.of_dispatch[from], picture.of_dispatch[i]);
  }
  for (const auto& [from, to] : edges)
    if (from != to) add_edge(text, boxes[from], boxes[to]);
  for (const Placed& box : boxes) add_box(text, box);
  return text + "</svg>\n";
}

}  // namespace samples
