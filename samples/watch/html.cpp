#include "samples/watch/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "samples/watch/drawing.h"

namespace samples {
namespace {

constexpr std::string_view style = R"(
:root{color-scheme:light dark;--page:#f3f5f8;--card:#ffffff;--text:#1f2430;--muted:#5d6675;--line:#e3e6ec;
  --bar:#cfe1f5;--bad:#b3401a}
@media (prefers-color-scheme:dark){:root{--page:#0c0e12;--card:#14171d;--text:#e8ebf1;--muted:#9aa4b5;--line:#2a303b;
  --bar:#23405f;--bad:#f08a60}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:14px/1.45 system-ui,'Segoe UI',Helvetica,Arial,sans-serif}
main{max-width:1040px;margin:0 auto;padding:24px 20px 48px}
h1{font-size:22px;margin:0}
h2{font-size:16px;margin:0 0 10px}
h3{font-size:13px;margin:0 0 6px;font-weight:600}
p{margin:4px 0 10px}
.muted{color:var(--muted)}
.bad{color:var(--bad)}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px 18px;margin-top:16px;
  overflow-x:auto}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(116px,1fr));gap:10px;margin-top:16px}
.figures div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px}
.figures b{display:block;font-size:16px;white-space:nowrap}
.figures span{color:var(--muted);font-size:12px}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(420px,100%),1fr));gap:24px}
svg{display:block;max-width:100%;height:auto}
img{display:block;max-width:100%;height:auto;border-radius:4px}
table{border-collapse:collapse;width:100%;font-size:12.5px;font-variant-numeric:tabular-nums}
th{text-align:right;font-weight:600;color:var(--muted);padding:3px 6px;border-bottom:1px solid var(--line)}
td{text-align:right;padding:3px 6px;white-space:nowrap;position:relative}
th:first-child,td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;padding-left:0}
tr+tr td{border-top:1px solid var(--line)}
td i{position:absolute;right:0;top:2px;bottom:2px;background:var(--bar);border-radius:3px}
td b{position:relative;font-weight:400}
details{margin-top:10px}
summary{cursor:pointer;color:var(--muted)}
.phases{display:flex;height:26px;border-radius:5px;overflow:hidden;margin:2px 0 14px;font-size:12px}
.phases span{padding:4px 8px;white-space:nowrap;overflow:hidden;background:var(--bar);border-right:2px solid var(--card)}
)";

}  // namespace

std::string html_table(const std::vector<std::string>& head, const std::vector<std::vector<Cell>>& rows) {
  std::string html = "<table>\n<tr>";
  for (const std::string& title : head) html += "<th>" + escaped(title) + "</th>";
  html += "</tr>\n";
  for (const std::vector<Cell>& row : rows) {
    html += "<tr>";
    for (const Cell& cell : row) {
      html += cell.hint.empty() ? "<td>" : "<td title='" + escaped(cell.hint) + "'>";
      if (cell.share >= 0) {
        html += fmt::format("<i style='width:{:.1f}%'></i>", 100 * std::min(cell.share, 1.0));
      }
      html += "<b>" + escaped(cell.text) + "</b></td>";
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string html_details(std::string_view summary, std::string_view inner) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(summary), inner);
}

std::string html_section(std::string_view title, std::string_view inner) {
  if (inner.empty()) return {};
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", escaped(title), inner);
}

std::string html_page(std::string_view title, std::string_view inner) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'/>\n"
      "<meta name='viewport' content='width=device-width,initial-scale=1'/>\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
      escaped(title), style, inner);
}

std::string data_url(std::string_view type, std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string url = fmt::format("data:{};base64,", type);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) url += j <= count ? digits[group >> (18 - 6 * j) & 63] : '=';
  }
  return url;
}

}  // namespace samples
