#include "samples/watch/page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>

#include "samples/watch/curves.h"
#include "samples/watch/fields.h"
#include "samples/watch/html.h"
#include "samples/watch/numerics.h"
#include "samples/watch/operators.h"
#include "samples/watch/run_summary.h"

namespace samples {
namespace {

constexpr std::size_t most_rows = 15;     ///< of a table that is not folded away
constexpr std::size_t most_tensors = 24;  ///< whose exponents are drawn
constexpr std::size_t most_pictures = 8;  ///< of one name

std::string html_figures(const RunSummary& run) {
  std::string html = "<div class='figures'>\n";
  for (const auto& [name, figure] : run.figures()) {
    html += fmt::format("<div><b>{}</b><span>{}</span></div>\n", escaped(figure), escaped(name));
  }
  return html + "</div>\n";
}

std::string html_curves(const Curves& curves) {
  const std::vector<ChartPanel> panels = curves.panels();
  if (std::ranges::all_of(panels, &ChartPanel::empty)) return {};
  return draw_panels("", "", panels, svg_drawing);
}

/// The contents of a picture's file: where its record says, or beside the log.
std::string picture_bytes(const Record& record, const std::filesystem::path& folder) {
  const std::filesystem::path path = text(record, "path");
  for (const std::filesystem::path& place :
       {path, folder / path.parent_path().filename() / path.filename(), folder / path.filename()}) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(place, error)) continue;
    std::ifstream in(place, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (bytes.starts_with("\x89PNG")) return bytes;
  }
  return {};
}

/// The newest picture of each name, and earlier ones folded away: some of them, where there are many.
std::string html_pictures(const std::vector<Record>& records, const std::filesystem::path& folder) {
  std::map<std::string, std::vector<const Record*>> by_name;
  for (const Record& record : records) {
    if (text(record, "kind") == "picture") by_name[text(record, "name")].push_back(&record);
  }
  std::string html;
  for (const auto& [name, pictures] : by_name) {
    std::string earlier;
    const std::size_t shown = std::min(most_pictures, pictures.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const Record& record =
          *pictures[pictures.size() - 1 - i * (pictures.size() - 1) / std::max<std::size_t>(1, shown - 1)];
      const std::string bytes = picture_bytes(record, folder);
      const std::string title = fmt::format("{}, after step {:.0f}", name, amount(record, "step"));
      const std::string image =
          bytes.empty() ? fmt::format("<p class='muted'>{} is not there</p>\n", escaped(text(record, "path")))
                        : fmt::format("<img src='{}' alt='{}'/>\n", data_url("image/png", bytes), escaped(title));
      (i == 0 ? html : earlier) += fmt::format("<h3>{}</h3>\n{}", escaped(title), image);
    }
    if (!earlier.empty()) html += html_details("earlier ones", earlier);
  }
  return html;
}

/// What a table of operators tells: the titles of its columns, and how its numbers are written.
struct Ranking {
  std::string title;
  std::string rows;    ///< "operator"
  std::string second;  ///< "phase"
  std::string numbers;
  double OperatorCost::*cost;
  std::string (*text)(double);
};

std::string milliseconds_text(double milliseconds) {
  return time_text(milliseconds / 1000);
}

/// The operators that have most of something, with what share of all; nothing where none has any.
std::string top_table(const std::vector<OperatorCost>& operators, const Ranking& ranking) {
  const auto cost = ranking.cost;
  std::vector<const OperatorCost*> order;
  double total = 0;
  for (const OperatorCost& each : operators) {
    order.push_back(&each);
    total += each.*cost;
  }
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](const OperatorCost* each) { return each->*cost; });
  const double most = order.empty() ? 0 : order.front()->*cost;
  if (!(most > 0)) return {};
  std::vector<std::vector<Cell>> rows;
  for (const OperatorCost* each : order) {
    if (each->*cost <= 0) break;
    const std::string hint = each->shader.empty() ? "" : fmt::format("{}: {}", each->shader, each->result);
    rows.push_back({{each->label, -1, hint},
                    {each->phase},
                    {ranking.text(each->*cost), each->*cost / most},
                    {fmt::format("{:.1f}%", 100 * each->*cost / total)}});
  }
  const std::vector<std::string> head{ranking.rows, ranking.second, ranking.numbers, "share"};
  const std::size_t shown = std::min(most_rows, rows.size());
  std::string html = html_table(head, {rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown)});
  if (rows.size() > shown) {
    html += html_details(fmt::format("{} more", rows.size() - shown),
                         html_table(head, {rows.begin() + static_cast<std::ptrdiff_t>(shown), rows.end()}));
  }
  return html;
}

/// What each phase takes of the step's device time, as one bar.
std::string html_phases(const std::vector<OperatorCost>& operators) {
  double total = 0;
  std::map<std::string, double> phases;
  for (const OperatorCost& each : operators) {
    phases[each.phase] += each.milliseconds;
    total += each.milliseconds;
  }
  if (!(total > 0)) return "<p class='muted'>Times were not taken: <code>--trace FILE</code> does.</p>\n";
  std::string html = fmt::format("<p>{} dispatches take {} of device time a step.</p>\n<div class='phases'>",
                                 operators.size(), time_text(total / 1000));
  for (const char* phase : {"feed", "forward", "backward", "update"}) {
    const double share = phases[phase] / total;
    if (share <= 0) continue;
    const std::string name = share < 0.1 ? "" : fmt::format("{} {:.0f}%", phase, 100 * share);
    html += fmt::format("<span style='width:{0:.1f}%' title='{1}, {0:.1f}%'>{2}</span>", 100 * share, phase, name);
  }
  return html + "</div>\n";
}

std::string html_operators(const std::vector<OperatorCost>& operators, const Record& start) {
  if (operators.empty()) return {};
  std::string html = html_phases(operators);
  const Record& plan = inside(start, "plan");
  std::string memory;
  constexpr std::pair<const char*, const char*> parts[] = {
      {"activations and their gradients, in one arena", "arena_bytes"},
      {"weights", "weight_bytes"},
      {"gradients", "gradient_bytes"},
      {"optimizer", "optimizer_bytes"},
      {"data", "data_bytes"}};
  for (const auto& [name, key] : parts) {
    if (amount(plan, key) > 0) {
      memory += fmt::format("{}{} of {}", memory.empty() ? "" : ", ", byte_text(amount(plan, key)), name);
    }
  }
  if (!memory.empty()) html += fmt::format("<p class='muted'>Memory: {}.</p>\n", memory);
  const std::vector<OperatorCost> kinds = kinds_of(operators);
  const Ranking rankings[] = {
      {"By time", "operator", "phase", "time", &OperatorCost::milliseconds, milliseconds_text},
      {"By time, of a kind", "kind", "dispatches", "time", &OperatorCost::milliseconds, milliseconds_text},
      {"By memory of results", "operator", "phase", "results", &OperatorCost::result_bytes, byte_text},
      {"By memory moved, of a kind", "kind", "dispatches", "bytes", &OperatorCost::bytes_moved, byte_text}};
  html += "<div class='two'>\n";
  for (const Ranking& ranking : rankings) {
    const std::string table = top_table(ranking.rows == "kind" ? kinds : operators, ranking);
    if (!table.empty()) html += fmt::format("<div><h3>{}</h3>\n{}</div>\n", ranking.title, table);
  }
  return html + "</div>\n";
}

std::string html_overflows(const Numerics& numerics) {
  const double before = numerics.skipped_before();
  const std::string earlier = before > 0 ? fmt::format("<p>{:.0f} {} skipped before this log begins.</p>\n", before,
                                                       before == 1 ? "step was" : "steps were")
                                         : "";
  const std::vector<Overflow> overflows = numerics.overflows();
  if (overflows.empty()) return before > 0 ? earlier : "<p>No step was skipped.</p>\n";
  std::vector<std::vector<Cell>> rows;
  bool unseen = false;
  for (const Overflow& overflow : overflows) {
    unseen = unseen || overflow.culprit.empty();
    rows.push_back({{overflow.culprit.empty() ? "not looked at" : overflow.culprit},
                    {overflow.kind},
                    {fmt::format("{:.0f}", overflow.step)},
                    {fmt::format("{:.9g}", overflow.loss_scale)}});
  }
  const std::vector<std::string> head{"first tensor that was not finite", "numbers", "skipped step", "loss scale"};
  const auto shown = static_cast<std::ptrdiff_t>(std::min(most_rows, rows.size()));
  std::string html = "<h3>Skipped steps</h3>\n" + earlier + html_table(head, {rows.begin(), rows.begin() + shown});
  if (std::ssize(rows) > shown) {
    html += html_details(fmt::format("{} more", std::ssize(rows) - shown),
                         html_table(head, {rows.begin() + shown, rows.end()}));
  }
  if (unseen) {
    html +=
        "<p class='muted'><code>--watch '*.gradient' --watch-every 1</code> looks at gradients in every step, "
        "but for those that <code>--trace</code> times.</p>\n";
  }
  return html;
}

std::string html_tensors(const std::vector<const TensorHistory*>& tensors) {
  const std::size_t shown = std::min(most_tensors, tensors.size());
  std::string html =
      "<h3>Exponents over time</h3>\n<p class='muted'>Rows are exponents, columns steps; the stronger the colour, the "
      "more of a tensor's numbers. Between the lines lie f16's normal numbers. Gradients are as stored: multiplied by "
      "the loss scale.</p>\n";
  html += draw_exponents({tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(shown)});
  std::vector<std::vector<Cell>> rows;
  for (const TensorHistory* tensor : tensors) {
    const double elements = std::max(1.0, amount(tensor->last, "elements"));
    const double zeros = amount(tensor->last, "zeros") / elements;
    rows.push_back({{tensor->name, -1, text(tensor->last, "op")},
                    {fmt::format("{}", tensor->looks.size())},
                    {fmt::format("{:.3g}", amount(tensor->last, "rms"))},
                    {fmt::format("{:.3g}", amount(tensor->last, "min"))},
                    {fmt::format("{:.3g}", amount(tensor->last, "max"))},
                    {fmt::format("{:.1f}%", 100 * zeros), zeros},
                    {fmt::format("{:.1f}%", 100 * tensor->most_subnormal), tensor->most_subnormal},
                    {fmt::format("{:.0f}", tensor->too_large)},
                    {fmt::format("{:.0f}", tensor->not_finite)}});
  }
  const std::vector<std::string> head{
      "tensor", "looks", "rms", "min", "max", "zeros", "most subnormal", "looks with the largest", "not finite"};
  const std::string table = html_table(head, rows);
  return html + (rows.size() > most_rows ? html_details(fmt::format("all {} tensors", rows.size()), table) : table);
}

std::string html_numerics(const Numerics& numerics) {
  const std::vector<const TensorHistory*> tensors = numerics.tensors();
  std::string html = html_overflows(numerics);
  if (!tensors.empty()) return html + html_tensors(tensors);
  return html + "<p class='muted'>No tensors were looked at: <code>--watch PATTERN</code> does.</p>\n";
}

std::string html_run(const RunSummary& run) {
  std::string html;
  std::vector<std::vector<Cell>> rows;
  for (const Record& test : run.evaluations()) {
    std::string scores;
    for (const auto& [name, value] : inside(test, "scores").items()) {
      if (value.is_number())
        scores += fmt::format("{}{} {:.4g}", scores.empty() ? "" : ", ", name, value.get<double>());
    }
    const double loss = number(test, "train_loss");
    rows.push_back({{scores},
                    {fmt::format("{:.0f}", amount(test, "step"))},
                    {std::isfinite(loss) ? fmt::format("{:.4g}", loss) : "not finite"},
                    {fmt::format("{:.0f}", amount(test, "samples_per_second"))},
                    {time_text(amount(test, "train_seconds"))}});
  }
  const std::vector<std::string> head{"test", "step", "training loss", "samples/s", "time of training"};
  if (!rows.empty()) html += html_details(fmt::format("{} tests", rows.size()), html_table(head, rows));
  rows.clear();
  const Record& flags = inside(run.start(), "flags");
  for (const auto& [flag, value] : flags.items()) {
    if (value.is_string()) rows.push_back({{flag}, {value.get<std::string>()}});
  }
  if (!rows.empty()) html += html_details("flags", html_table({"flag", "value"}, rows));
  std::string decisions;
  for (const std::string& decision : run.decisions()) decisions += "<p>" + escaped(decision) + "</p>\n";
  if (!decisions.empty()) html += html_details("what compiling decided", decisions);
  return html;
}

}  // namespace

std::string dashboard_page(const std::vector<Record>& records, const std::filesystem::path& folder) {
  RunSummary run;
  Curves curves;
  Numerics numerics;
  for (const Record& record : records) {
    run.add(record);
    curves.add(record);
    numerics.add(record);
  }
  std::string html = fmt::format("<h1>{}</h1>\n<p class='muted'>{}, {}, begun {}</p>\n", escaped(curves.title()),
                                 escaped(curves.subtitle()), escaped(run.state()), escaped(text(run.start(), "time")));
  html += html_figures(run);
  html += html_section("Curves", html_curves(curves));
  html += html_section("Predictions", html_pictures(records, folder));
  html += html_section("Operators of a step", html_operators(operators_of(records), run.start()));
  html += html_section("Numerics", html_numerics(numerics));
  html += html_section("The run", html_run(run));
  return html_page(curves.title(), html);
}

}  // namespace samples
