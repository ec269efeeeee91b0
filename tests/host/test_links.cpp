// Links of the documentation within the tree.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

/// What a document links to, and what others may link to in it.
struct Document {
  std::vector<std::string> links{};
  std::set<std::string> anchors{};
};

/// The end of a link to a heading, as GitHub makes it: in lower case, without punctuation, and spaces as hyphens.
std::string anchor_of(const std::string& heading) {
  static const std::regex link(R"(!?\[([^\]]*)\]\([^)]*\))");
  std::string anchor;
  for (const char c : std::regex_replace(heading, link, "$1")) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ' ') {
      anchor += '-';
    } else if (byte >= 0x80) {  // of a letter, most likely
      anchor += c;
    } else if (std::isalnum(byte) != 0 || c == '-' || c == '_') {
      anchor += static_cast<char>(std::tolower(byte));
    }
  }
  return anchor;
}

/// Reads a document; what is fenced, or between backticks, is no link.
Document document_of(std::istream& file) {
  static const std::regex heading(R"(^#+ +(.*[^ #]) *#*$)");
  static const std::regex fences("^ *```");
  static const std::regex code("`[^`]*`");
  static const std::regex link(R"re(\]\(([^)\s]+)\)|^\[[^\]]+\]: +(\S+)|\b(?:src|href)="([^"]+)")re",
                               std::regex::multiline);
  Document document;
  std::map<std::string, int> repeats;
  std::string text;
  bool fenced = false;
  for (std::string line; std::getline(file, line);) {
    const bool fence = std::regex_search(line, fences);
    if (fence) fenced = !fenced;
    if (fence || fenced) continue;
    std::smatch match;
    if (std::regex_match(line, match, heading)) {
      const std::string anchor = anchor_of(match[1]);
      const int before = repeats[anchor]++;
      document.anchors.insert(before == 0 ? anchor : anchor + "-" + std::to_string(before));
    }
    text += line + '\n';
  }
  text = std::regex_replace(text, code, "");
  for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match) {
    for (std::size_t i = 1; i < match->size(); ++i) {
      if ((*match)[i].matched) document.links.push_back((*match)[i]);
    }
  }
  return document;
}

/// By its path from the root of the tree.
std::map<std::string, Document> documents() {
  const fs::path root(HALFSTEP_SOURCE);
  std::vector<fs::path> files{root / "README.md"};
  for (const char* folder : {"engine", "shaders", "models", "samples", "tests"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() == ".md") files.push_back(entry.path());
    }
  }
  std::map<std::string, Document> found;
  for (const fs::path& path : files) {
    std::ifstream file(path);
    found.emplace(path.lexically_relative(root).generic_string(), document_of(file));
  }
  return found;
}

/// What is wrong with a link in the document at `from`, or an empty text.
std::string objection_to_link(const std::map<std::string, Document>& all, const std::string& from,
                              const std::string& link) {
  const std::size_t hash = std::min(link.find('#'), link.size());
  const std::string target = link.substr(0, hash);
  const std::string path =
      target.empty() ? from : (fs::path(from).parent_path() / target).lexically_normal().generic_string();
  if (!fs::exists(fs::path(HALFSTEP_SOURCE) / path)) return "there is no " + path;
  const auto document = all.find(path);
  if (hash == link.size() || document == all.end()) return "";
  const std::string anchor = link.substr(hash + 1);
  return document->second.anchors.contains(anchor) ? "" : path + " has no heading for #" + anchor;
}

}  // namespace

TEST_CASE("Links within the tree name files and headings that there are") {
  const std::map<std::string, Document> all = documents();
  CHECK(all.size() >= 4);
  std::size_t seen = 0;
  for (const auto& [path, document] : all) {
    for (const std::string& link : document.links) {
      if (link.find(':') != std::string::npos) continue;  // of another site
      seen++;
      const std::string why = objection_to_link(all, path, link);
      if (!why.empty()) FAIL_CHECK(path << ": " << link << ": " << why);
    }
  }
  CHECK(seen > 100);
}

TEST_CASE("The reader of links sees headings and links, and no code") {
  std::istringstream text(
      "# The `first` one: [it](x)\n## Twice, A_b-c\n## Twice, A_b-c\n```sh\n# none\n[no](no)\n```\n"
      "See [`this`](a.h), `[no](no)` and\n[that\none](b.md#c). <img src=\"d.png\">\n[e]: f.md\n");
  const Document document = document_of(text);
  CHECK(document.anchors == std::set<std::string>{"the-first-one-it", "twice-a_b-c", "twice-a_b-c-1"});
  CHECK(document.links == std::vector<std::string>{"x", "a.h", "b.md#c", "d.png", "f.md"});
  const std::map<std::string, Document> all{{"README.md", document}};
  CHECK(objection_to_link(all, "README.md", "#twice-a_b-c-1").empty());
  CHECK(objection_to_link(all, "engine/README.md", "../README.md#the-first-one-it").empty());
  CHECK(objection_to_link(all, "README.md", "#none") == "README.md has no heading for #none");
  CHECK(objection_to_link(all, "README.md", "engine/none.h") == "there is no engine/none.h");
}
