#include "samples/watch/step_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <iterator>
#include <span>
#include <string>

#include "samples/watch/records.h"
#include "samples/watch/step_picture.h"

namespace samples {
namespace {

/// Text within quotes of graphviz.
std::string quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string dot_of(const halfstep::PlannedStep& step) {
  std::string text =
      "digraph step {\n  graph [newrank=true, splines=line, nslimit=2, nslimit1=2, mclimit=0.2]\n  node [shape=box, "
      "style=filled, fontname=\"Helvetica\", fontsize=10]\n";
  for (const char* phase : {"feed", "forward", "backward", "update"}) {
    fmt::format_to(std::back_inserter(text), "  subgraph cluster_{0} {{\n    label=\"{0}\"\n", phase);
    for (std::size_t i = 0; i < step.dispatches.size(); ++i) {
      const halfstep::PlannedDispatch& dispatch = step.dispatches[i];
      if (dispatch.phase != phase) continue;
      const StepBox box = box_of(step, dispatch);
      std::string label;
      for (const std::string& name : box.operators) label += quoted(name) + "\\n";
      fmt::format_to(std::back_inserter(text), "    d{} [label=\"{}{}\", fillcolor=\"{}\", peripheries={}]\n", i, label,
                     quoted(box.result), box.colour, box.operators.size() > 1 ? 2 : 1);
    }
    text += "  }\n";
  }
  for (std::size_t i = 0; i < step.dispatches.size(); ++i) {
    for (const std::size_t from : sources_of(step, i))
      fmt::format_to(std::back_inserter(text), "  d{} -> d{}\n", from, i);
  }
  return text + "}\n";
}

}  // namespace

void write_step_graph(const std::filesystem::path& file, const halfstep::PlannedStep& step) {
  const std::string form = file.extension().string();
  std::string text;
  if (form == ".svg") text = step_picture(step);
  if (form == ".dot") text = dot_of(step);
  if (form == ".json") text = line_of(operators_record(step, {})["rows"]) + "\n";
  const halfstep::Bytes part = std::as_bytes(std::span(text));
  halfstep::write_atomically(file, std::span(&part, 1));
}

}  // namespace samples
