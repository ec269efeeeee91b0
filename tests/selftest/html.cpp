#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "selftest/report.h"

namespace halfstep::selftest {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += c;
    }
  }
  return result;
}

constexpr std::string_view style = R"(
:root{--ink:#1b1f24;--soft:#5a6472;--line:#d9dee5;--paper:#fff;--right:#1a7f37;--slow:#9a6700;--missing:#6e7781;
--wrong:#cf222e;--crashed:#8250df;--code:#f3f5f8}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa5b1;--line:#30363d;--paper:#0d1117;--right:#3fb950;
--slow:#d29922;--missing:#8b949e;--wrong:#ff7b72;--crashed:#bc8cff;--code:#161b22}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1060px;margin:2em auto;
padding:0 1em}h1{font-size:1.5em;margin:0}h2{font-size:1.1em;margin:2em 0 .4em}p{margin:.3em 0}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.35em .8em .35em 0;
border-bottom:1px solid var(--line)}th{color:var(--soft);font-weight:500}.soft{color:var(--soft)}
.tally span{display:inline-block;margin:.8em 1.6em 0 0;font-size:1.1em}.tally b{font-size:1.5em}
.right{color:var(--right)}.slow{color:var(--slow)}.missing{color:var(--missing)}.wrong{color:var(--wrong)}
.crashed{color:var(--crashed)}td.verdict{font-weight:600;width:5em}td.name{width:17em;overflow-wrap:anywhere}
code{background:var(--code);padding:.1em .3em;border-radius:3px;font-size:.88em;overflow-wrap:anywhere}
.fault{border-left:3px solid var(--wrong);padding-left:.7em;margin:.15em 0}td.number{text-align:right;white-space:nowrap}
summary{cursor:pointer;color:var(--soft)}ul{margin:.2em 0;padding-left:1.2em})";

std::string size_of(const LargestError& error) {
  if (error.share > 1 && error.ulps == 0) return "<b class=wrong>wrong</b>";  // of infinities and what is no number
  if (error.allowed > 0) return fmt::format("<b>{:.3g} ulp</b> of {:.3g} allowed", error.ulps, error.allowed);
  if (error.share > 1) return fmt::format("<b>{:.3g} ulp</b>, {:.3g} times what is allowed", error.ulps, error.share);
  return fmt::format("<b>{:.3g} ulp</b>, {:.0f} % of what is allowed", error.ulps, 100 * error.share);
}

/// The worst first of what a case measured; all are in the JSON.
std::string errors_of(const CaseReport& one) {
  if (one.errors.empty()) return "";
  std::vector<LargestError> errors = one.errors;
  std::ranges::stable_sort(errors, std::greater<>{}, &LargestError::share);
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(errors.size(), 4); ++i) {
    const LargestError& e = errors[i];
    text += fmt::format("<div>{}: {} <span class=soft>{}</span></div>", escaped(e.of), size_of(e), escaped(e.at));
  }
  if (errors.size() > 4) text += fmt::format("<div class=soft>and {} more in the JSON report</div>", errors.size() - 4);
  return text;
}

/// The first faults; the others open on a click.
std::string faults_of(const CaseReport& one) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < one.faults.size(); ++i) {
    if (i == most) text += fmt::format("<details><summary>and {} more</summary>", one.faults.size() - most);
    text += fmt::format("<div class=fault>{}</div>", escaped(one.faults[i]));
  }
  return one.faults.size() > most ? text + "</details>" : text;
}

/// A row of a table; in that of a group, names lack the group's.
std::string row(const CaseReport& one, const std::string& group) {
  std::string details = fmt::format("<div class=soft>{}</div>", escaped(one.what));
  details += faults_of(one);
  for (const std::string& fact : one.facts) details += fmt::format("<div>{}</div>", escaped(fact));
  details += errors_of(one);
  if (one.verdict >= Verdict::wrong) {
    if (!one.spirv.empty())
      details += fmt::format("<div>kernel {}: <code>{}</code></div>", escaped(one.kernel), escaped(one.spirv));
    if (!one.dispatch.empty())
      details +=
          fmt::format("<div>its dispatches alone: <code>selftest --kernel {}</code></div>", escaped(one.dispatch));
    details += fmt::format("<div>the case alone: <code>{}</code></div>", escaped(one.command));
  }
  return fmt::format(
      "<tr><td class='verdict {0}'>{0}</td><td class=name>{1}</td><td>{2}</td><td class=number>{3:.1f} s"
      "</td></tr>\n",
      name(one.verdict), escaped(one.name.substr(group.empty() ? 0 : group.size() + 1)), details, one.seconds);
}

std::string tally(const Report& report) {
  std::string text;
  for (const Verdict verdict : {Verdict::wrong, Verdict::crashed, Verdict::slow, Verdict::missing, Verdict::right}) {
    const auto count = std::ranges::count(report.cases, verdict, &CaseReport::verdict);
    if (count > 0) text += fmt::format("<span class={0}><b>{1}</b> {0}</span>", name(verdict), count);
  }
  return text;
}

std::string table(const std::string& group, const std::vector<CaseReport>& cases) {
  std::string text = fmt::format("<h2>{}</h2>\n<table><tr><th>verdict<th>case<th>what was found<th>time</tr>\n",
                                 group.empty() ? "Wrong" : escaped(group));
  for (const CaseReport& one : cases) text += row(one, group);
  return text + "</table>\n";
}

/// How the mode is asked for.
std::string mode_flag(const Report& report) {
  if (report.mode == "normal") return "";
  return report.mode == "cases" ? " --case" : " --" + escaped(report.mode);
}

}  // namespace

std::string html_page(const Report& report) {
  std::string page = fmt::format(
      "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
      "<title>Self-test: {0}</title><style>{1}</style>\n<h1>{0}</h1>\n<p>{2} &middot; Vulkan {3} &middot; {4} device "
      "&middot; {5}</p>\n<p class=soft>{11}</p>\n<p class=soft>Halfstep {6}, selftest{7}, {8} cases in {9:.0f} "
      "s</p>\n<p class=tally>{10}"
      "</p>\n",
      escaped(report.device), style, escaped(report.driver), escaped(report.api_version), escaped(report.type),
      escaped(report.tier), escaped(report.version), mode_flag(report), report.cases.size(), report.seconds,
      tally(report), escaped(report.identity));
  if (!report.avoided.empty()) {
    page += "<h2>What Halfstep avoids on this device</h2><ul>";
    for (const std::string& one : report.avoided) page += fmt::format("<li>{}</li>", escaped(one));
    page += "</ul>\n";
  }
  std::vector<CaseReport> bad;
  std::ranges::copy_if(report.cases, std::back_inserter(bad),
                       [](const CaseReport& one) { return one.verdict >= Verdict::wrong; });
  if (!bad.empty()) page += table("", bad);
  std::vector<std::string> groups;
  for (const CaseReport& one : report.cases) {
    const std::string group = one.name.substr(0, one.name.find('/'));
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  for (const std::string& group : groups) {
    std::vector<CaseReport> of_group;
    std::ranges::copy_if(report.cases, std::back_inserter(of_group),
                         [&](const CaseReport& one) { return one.name.starts_with(group + "/"); });
    page += table(group, of_group);
  }
  return page + "</html>\n";
}

}  // namespace halfstep::selftest
