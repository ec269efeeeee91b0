// Makes one HTML file of a run's log, to be opened in a browser or sent to someone: curves, operators by time and by
// memory, numerics, predictions.
//
//   $ bin/train_cifar10 --log run/log.jsonl --trace run/trace.json --watch '*.gradient' --pictures run/pictures
//   $ bin/dashboard run
//   run/log.html: 391 steps, 412 records
#include <halfstep/halfstep.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>

#include "samples/common/command_line.h"
#include "samples/common/say.h"
#include "samples/watch/log.h"
#include "samples/watch/page.h"

using namespace halfstep;

namespace {

/// The log that `path` is, or the only one in the folder that it is.
std::filesystem::path log_of(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  std::vector<std::string> logs;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.path().extension() == ".jsonl") logs.push_back(entry.path().filename().string());
  }
  std::ranges::sort(logs);
  if (logs.size() == 1) return path / logs.front();
  fail(ErrorCode::bad_file, path.string(),
       fmt::format("expected a folder with one log, *.jsonl, got {}",
                   logs.empty() ? "none" : fmt::format("{}", fmt::join(logs, ", "))),
       "name the log itself");
}

int run(const std::filesystem::path& path, std::filesystem::path out) {
  const std::filesystem::path log = log_of(path);
  if (out.empty()) out = std::filesystem::path(log).replace_extension(".html");
  samples::check_outputs({{"--out", out}}, {{"run", log}});
  const std::vector<samples::Record> records = samples::read_log(log);
  const std::string page = samples::dashboard_page(records, log.parent_path());
  const Bytes parts[] = {std::as_bytes(std::span(page))};
  write_atomically(out, parts);
  const auto steps =
      std::ranges::count_if(records, [](const samples::Record& record) { return record["kind"] == "step"; });
  samples::say("{}: {} steps, {} records\n", out.string(), steps, records.size());
  return samples::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes one HTML file, which needs no server, of what a run wrote with --log.");
  std::filesystem::path path;
  std::filesystem::path out;
  app.add_option("run", path, "Log of a run, or a folder with one (*.jsonl)")->required();
  app.add_option("--out", out, "HTML file to write (that of the log, ending in .html)");
  return samples::run_program(app, argc, argv, [&] { return run(path, out); });
}
