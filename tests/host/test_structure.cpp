// The rules of the source tree: includes run one way only, files and functions stay short.
#include <doctest/doctest.h>

#include <algorithm>
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

struct SourceFile {
  std::string path;  ///< from the root of the tree
  std::vector<std::string> lines;
};

std::vector<SourceFile> read_sources() {
  static const std::set<std::string> kinds{".h", ".c", ".cpp", ".comp", ".glsl", ".cmake", ".txt", ".sh", ".in"};
  std::vector<SourceFile> sources;
  const fs::path root(HALFSTEP_SOURCE);
  for (const char* folder : {"engine", "shaders", "models", "samples", "tests"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || kinds.count(entry.path().extension().string()) == 0) continue;
      SourceFile source{entry.path().lexically_relative(root).generic_string(), {}};
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) source.lines.push_back(line);
      sources.push_back(source);
    }
  }
  return sources;
}

const std::vector<SourceFile>& sources() {
  static const std::vector<SourceFile> all = read_sources();
  return all;
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

bool is_code(const SourceFile& source) {
  const std::string kind = fs::path(source.path).extension().string();
  return kind == ".h" || kind == ".cpp";
}

bool has(const SourceFile& source, const char* word) {
  return std::ranges::any_of(source.lines,
                             [&](const std::string& line) { return line.find(word) != std::string::npos; });
}

std::string layer_of(const std::string& source) {
  return source.substr(7, source.find('/', 7) - 7);
}

// The layers that each layer of the engine may include besides itself and the public headers.
const std::map<std::string, std::set<std::string>>& layers() {
  static const std::map<std::string, std::set<std::string>> allowed{
      {"include", {}},
      {"base", {}},
      {"graph", {"base"}},
      {"plan", {"base", "graph"}},
      {"ops", {"base", "graph", "plan"}},
      {"passes", {"base", "graph"}},
      {"vk", {"base", "graph", "plan"}},
      {"optim", {}},
      {"io", {"base"}},
      {"dist", {"base", "graph"}},
      {"text", {"base"}},
      {"state", {"base", "graph", "plan", "vk"}},
      {"step", {"base", "graph", "plan", "ops", "passes", "vk", "optim", "state"}},
      {"data", {"base", "plan", "vk", "step", "io"}},
      {"run", {"base", "graph", "plan", "vk", "state", "step", "data"}},
      {"tune", {"base", "graph", "plan", "ops", "passes", "vk", "optim", "state", "step"}},
      {"train",
       {"base", "graph", "plan", "ops", "passes", "vk", "optim", "io", "state", "step", "data", "run", "tune", "dist"}},
  };
  return allowed;
}

// Public headers that any layer may include, and additional ones for some layers. train/ may include all.
bool may_include(const std::string& layer, const std::string& header) {
  static const std::set<std::string> basic{"language", "version",   "error",  "tensor", "process",
                                           "pattern",  "precision", "device", "guest"};
  static const std::map<std::string, std::set<std::string>> more{
      {"graph", {"graph"}},
      {"ops", {"ops", "encodings", "custom_operator"}},
      {"passes", {"ops"}},
      {"optim", {"ops", "optimizer", "update_rule"}},
      {"io", {"image_folder"}},
      {"text", {"sampling", "text"}},
      {"dist", {"exchange", "mpi"}},
      {"state", {"exchange", "optimizer"}},
      {"step", {"optimizer", "data", "recorder", "trainer_options"}},
      {"run", {"data", "ops"}},
      {"data", {"data", "image_folder", "ops"}},
  };
  if (layer == "train" || basic.count(header) > 0) return true;
  const auto found = more.find(layer);
  return found != more.end() && found->second.count(header) > 0;
}

// Why a file of `layer` may not declare something in halfstep::`room`, or an empty text. An operator's interface
// includes its lowering, so graph/ may name the class that does it.
std::string objection_to_declaring(const std::string& layer, const std::string& room, const std::string& name) {
  const auto known = layers().find(layer);
  if (known == layers().end() || layers().count(room) == 0 || room == layer || layer == "include") return "";
  if (layer == "graph" && room == "plan" && name == "Lowering") return "";
  return known->second.count(room) > 0 ? "" : layer + " may not declare " + room + "::" + name;
}

// Why `source` may not have `#include "include"`, or an empty text.
std::string objection(const std::string& source, const std::string& include, bool quotes) {
  const bool is_public = !quotes && starts_with(include, "halfstep/");
  if (starts_with(source, "models/")) {
    const bool fine = quotes ? starts_with(include, "models/") : is_public || include.find('/') == std::string::npos;
    return fine ? "" : "models see the public headers only";
  }
  if (starts_with(source, "samples/")) {
    if (is_public && include != "halfstep/halfstep.h" && include != "halfstep/mpi.h")
      return "samples include <halfstep/halfstep.h>, and <halfstep/mpi.h>";
    const bool fine = !quotes || starts_with(include, "models/") || starts_with(include, "samples/");
    return fine ? "" : "samples see the public headers and the models only";
  }
  if (starts_with(source, "engine/bindings/")) {
    const bool fine = !quotes || starts_with(include, "c/") || starts_with(include, "models/");
    return fine ? "" : "bindings see the public headers and the models only";
  }
  if (!starts_with(source, "engine/")) return "";
  const std::string layer = layer_of(source);
  if (is_public && layer != "include") {
    const std::string header = include.substr(9, include.find('.') - 9);
    return may_include(layer, header) ? "" : layer + " may not include <" + include + ">";
  }
  if (!quotes) return "";
  const std::string other = include.substr(0, include.find('/'));
  const auto known = layers().find(layer);
  if (known == layers().end()) return "engine/" + layer + " is no layer";
  return other == layer || known->second.count(other) > 0 ? "" : layer + " may not include " + other;
}

// The length of each function: from a line that opens a brace outside any function to the line that closes it. Braces
// in strings and characters are ignored; those of namespaces, types, initializers and linkage do not open a function.
struct FunctionLength {
  std::size_t first;
  std::size_t lines;
};

std::string without_literals(const std::string& line) {
  static const std::regex literals(R"re("(\\.|[^"\\])*"|'(\\.|[^'\\])*'|//.*)re");
  return std::regex_replace(line, literals, "");
}

std::vector<FunctionLength> functions(const SourceFile& source) {
  static const std::regex scope(R"re(^\s*(template\b.*)?(namespace|struct|class|enum|union|extern)\b[^()]*\{)re");
  std::vector<FunctionLength> found;
  std::vector<bool> is_scope;
  std::size_t first = 0;
  bool raw = false;
  for (std::size_t number = 0; number < source.lines.size(); number++) {
    // The lines of a multi-line raw string are text, not code.
    const std::string& text = source.lines[number];
    if (raw || (text.find("R\"") != std::string::npos && text.find(")\"") == std::string::npos)) {
      raw = text.find(")\"") == std::string::npos;
      continue;
    }
    const std::string line = without_literals(text);
    const bool opens_scope = std::regex_search(line, scope);
    for (const char c : line) {
      if (c == '{') {
        const bool outside = std::find(is_scope.begin(), is_scope.end(), false) == is_scope.end();
        if (outside && !opens_scope) first = number;
        is_scope.push_back(outside && opens_scope);
      } else if (c == '}' && !is_scope.empty()) {
        const bool closes_scope = is_scope.back();
        is_scope.pop_back();
        const bool outside = std::find(is_scope.begin(), is_scope.end(), false) == is_scope.end();
        if (!closes_scope && outside) found.push_back({first, number - first + 1});
      }
    }
  }
  return found;
}

}  // namespace

TEST_CASE("Includes run one way only") {
  static const std::regex include(R"re(^\s*#include\s+([<"])([^>"]+)[>"])re");
  int seen = 0;
  for (const SourceFile& source : sources()) {
    if (!is_code(source)) continue;
    for (const std::string& line : source.lines) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      seen++;
      const std::string why = objection(source.path, match[2], match[1] == "\"");
      if (!why.empty()) FAIL_CHECK(source.path << ": " << line << ": " << why);
    }
  }
  CHECK(seen > 100);
}

TEST_CASE("Forward declarations run the same way") {
  static const std::regex space(R"re(^namespace halfstep(::(\w+))? \{)re");
  static const std::regex declaration(R"re(^(namespace \w+(::(\w+))? \{ )?(class|struct|enum class) (\w+);)re");
  int seen = 0;
  for (const SourceFile& source : sources()) {
    if (!is_code(source) || !starts_with(source.path, "engine/")) continue;
    std::string room;
    for (const std::string& line : source.lines) {
      std::smatch match;
      if (std::regex_search(line, match, space)) room = match[2];
      if (!std::regex_search(line, match, declaration)) continue;
      seen++;
      const std::string why =
          objection_to_declaring(layer_of(source.path), match[3].matched ? match[3] : room, match[5]);
      if (!why.empty()) FAIL_CHECK(source.path << ": " << line << ": " << why);
    }
  }
  CHECK(seen > 3);
}

TEST_CASE("Kernels know a workgroup by linear_group() alone, so that a dispatch may be folded and cut in any way") {
  int seen = 0;
  for (const SourceFile& source : sources()) {
    if (!starts_with(source.path, "shaders/") || source.path == "shaders/common/indexing.glsl") continue;
    seen++;
    for (const std::string& line : source.lines) {
      for (const char* name : {"gl_WorkGroupID", "gl_NumWorkGroups", "gl_GlobalInvocationID"}) {
        if (line.find(name) != std::string::npos) FAIL_CHECK(source.path << ": " << name);
      }
    }
  }
  CHECK(seen > 100);
}

// Drivers may take isnan() to be false; common/math.glsl has a test of the bits.
TEST_CASE("Shaders find what is not a number by its bits") {
  static const std::regex by_driver(R"re(\bis(nan|inf)\()re");
  for (const SourceFile& source : sources()) {
    if (!starts_with(source.path, "shaders/")) continue;
    for (const std::string& line : source.lines) {
      if (std::regex_search(line, by_driver)) FAIL_CHECK(source.path << ": " << line);
    }
  }
}

// fmt/format.h declares it before version 11 only.
TEST_CASE("Files that join texts include fmt/ranges.h") {
  for (const SourceFile& source : sources()) {
    if (!is_code(source) || !has(source, "fmt::join(")) continue;
    CHECK_MESSAGE(has(source, "#include <fmt/ranges.h>"), source.path);
  }
}

TEST_CASE("Public headers know neither Vulkan nor any library") {
  static const std::regex library(R"re(#include\s+[<"](vulkan|volk|fmt|nlohmann|CLI|zlib)|\bVk[A-Z]\w+\s+\w+[;,)])re");
  for (const SourceFile& source : sources()) {
    if (!starts_with(source.path, "engine/include/")) continue;
    for (const std::string& line : source.lines) {
      if (std::regex_search(line, library)) FAIL_CHECK(source.path << ": " << line);
    }
  }
}

TEST_CASE("Files have at most 400 lines") {
  for (const SourceFile& source : sources()) {
    if (source.path == "engine/bindings/c/halfstep.h") continue;  // programs in C include one header
    CHECK_MESSAGE(source.lines.size() <= 400, source.path << " has " << source.lines.size() << " lines");
  }
}

TEST_CASE("Functions stay under 60 lines") {
  std::size_t seen = 0;
  for (const SourceFile& source : sources()) {
    if (!is_code(source)) continue;
    for (const FunctionLength& function : functions(source)) {
      seen++;
      if (function.lines >= 60) {
        FAIL_CHECK(source.path << ":" << function.first + 1 << " has " << function.lines << " lines");
      }
    }
  }
  CHECK(seen > 100);
}

TEST_CASE("The brace counter sees what is too long") {
  SourceFile source{"x.cpp",
                    {"namespace a {", "void f() {", "  if (x) {", "  }", "  g(\"{\");", "}", "struct S {",
                     "  int g() {", "    return 1;", "  }", "};", "}"}};
  const std::vector<FunctionLength> found = functions(source);
  REQUIRE(found.size() == 2);
  CHECK(found[0].first == 1);
  CHECK(found[0].lines == 5);
  CHECK(found[1].lines == 3);
}

// spirv-opt forgets in the copies of a loop's body what is precise, and drivers then contract it.
TEST_CASE("What is precise is not in unrolled loops") {
  for (const SourceFile& source : sources()) {
    if (!starts_with(source.path, "shaders/")) continue;
    CAPTURE(source.path);
    CHECK_FALSE((has(source, "precise ") && has(source, "[[unroll]]")));
  }
}

// ctest runs programs at the same time that have tests in common.
TEST_CASE("Tests write to no files of fixed names: each makes a TemporaryFolder") {
  for (const SourceFile& source : sources()) {
    if (!is_code(source) || !starts_with(source.path, "tests/")) continue;
    for (const std::string& line : source.lines) {
      if (line.find("temp_directory_path() / \"") != std::string::npos) FAIL_CHECK(source.path << ": " << line);
    }
  }
}

TEST_CASE("Nothing is left for later") {
  // Assembled here, so that this file does not match itself.
  const std::vector<std::string> words{std::string("TO") + "DO", std::string("FIX") + "ME",
                                       std::string("not imple") + "mented", std::string("place") + "holder"};
  for (const SourceFile& source : sources()) {
    for (const std::string& line : source.lines) {
      for (const std::string& word : words) {
        if (line.find(word) != std::string::npos) FAIL_CHECK(source.path << ": " << line);
      }
    }
  }
}
