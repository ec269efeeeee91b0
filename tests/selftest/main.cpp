// Finds out what a GPU and its driver compute wrongly of what training needs.
#include <halfstep/device.h>
#include <halfstep/error.h>
#include <halfstep/process.h>
#include <halfstep/version.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "harness/device.h"
#include "selftest/bed.h"
#include "selftest/cases.h"
#include "selftest/child.h"
#include "selftest/planted.h"
#include "selftest/report.h"
#include "selftest/reproduction.h"
#include "vk/device/validation.h"
#include "vk/device/workarounds.h"
#include "vk/shader/shaders.h"

namespace {

using namespace halfstep;
using namespace halfstep::selftest;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string device;
  bool quick = false;
  bool full = false;
  std::string json;
  std::string html;
  std::vector<std::string> cases;
  bool list = false;
  std::vector<std::string> compare;
  std::string spirv = "selftest-spirv";
  std::string plant;
  std::string replace;
  std::string kernel;
  bool keep = false;
  bool list_planted = false;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

const Case& case_called(const std::string& name) {
  const auto found = std::ranges::find(all_cases(), name, &Case::name);
  if (found == all_cases().end()) throw Error(fmt::format("[selftest] expected a case of --list, got '{}'", name));
  return *found;
}

void describe_device(Report& report) {
  const DeviceInfo& info = testing::device().info();
  report.device = info.name;
  report.driver = info.driver;
  report.api_version = info.api_version;
  report.type = info.type;
  report.tier = info.tier;
  const vk::Capabilities& capabilities = testing::context().capabilities();
  report.avoided = vk::avoided(capabilities);
  utsname system{};
  uname(&system);
  report.identity =
      fmt::format("vendor {:#06x}, device {:#06x}, driver version {:#x}, {} {} {}", capabilities.vendor_id,
                  capabilities.device_id, capabilities.driver_version, system.sysname, system.release, system.machine);
}

/// Writes the SPIR-V of the kernel that was wrong, as the driver got it.
void keep_kernel(CaseReport& report, const fs::path& folder) {
  fs::create_directories(folder);
  const fs::path file = folder / (report.kernel + ".spv");
  write_spirv(file, given_words(report.kernel));
  report.spirv = file.string();
}

/// `text` as one word of a shell's command.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

/// Runs a case again, with the same kernels.
std::string command_of(const Case& one, const Options& options) {
  std::string command = "selftest";
  const auto add = [&](std::string_view flag, const std::string& value) {
    if (!value.empty()) command += fmt::format(" {} {}", flag, quoted(value));
  };
  add("--device", options.device);
  if (options.full) command += " --full";
  add("--plant", options.plant);
  add("--replace", options.replace);
  add("--case", one.name);
  return command;
}

/// That a file cannot be written is no verdict on a GPU.
bool is_of_files(std::string_view error) {
  return error.starts_with("[file]");
}

/// Runs a case in this process.
CaseReport run_here(const Case& one, const Options& options) {
  CaseReport report{one.name, one.what};
  const auto begin = Clock::now();
  try {
    one.run(report);
  } catch (const std::exception& error) {
    if (is_of_files(error.what())) throw;
    add_fault(report, error.what());
    report.kernel = last_kernel();
  }
  for (const std::string& message : vk::validation_messages()) add_fault(report, "validation layer: " + message);
  report.seconds = seconds_since(begin);
  report.command = command_of(one, options);
  if (report.verdict == Verdict::wrong && !report.kernel.empty()) {
    keep_kernel(report, options.spirv);
  } else if (report.verdict == Verdict::wrong) {
    for (const std::string& shader : vk::used_shaders()) report.kernel += (report.kernel.empty() ? "" : " ") + shader;
  }
  forget_given_kernels();
  return report;
}

void print(const CaseReport& report) {
  fmt::print("{:<8} {} ({:.1f} s)\n", name(report.verdict), report.name, report.seconds);
  constexpr std::size_t most = 3;
  for (std::size_t i = 0; i < std::min(most, report.faults.size()); ++i) fmt::print("         {}\n", report.faults[i]);
  if (report.faults.size() > most) fmt::print("         and {} more\n", report.faults.size() - most);
  if (report.verdict >= Verdict::wrong) fmt::print("         alone: {}\n", report.command);
  if (!report.spirv.empty()) fmt::print("         SPIR-V: {}\n", report.spirv);
  if (!report.dispatch.empty()) fmt::print("         its dispatches alone: selftest --kernel {}\n", report.dispatch);
  std::fflush(stdout);
}

void print_details(const CaseReport& report) {
  for (const std::string& fact : report.facts) fmt::print("         {}\n", fact);
  for (const LargestError& e : report.errors) fmt::print("         {}: {:.3g} ulp, {}\n", e.of, e.ulps, e.at);
}

std::string last_line(const std::string& output) {
  const std::size_t end = output.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t before = output.rfind('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return output.substr(begin, end + 1 - begin);
}

/// Runs a case in a process of its own, and takes the device's description from what it reports.
CaseReport run_apart(const Case& one, const Options& options, const fs::path& file, Report& whole) {
  const std::chrono::seconds limit(options.quick ? 120 : options.full ? 3600 : 900);
  std::vector<std::string> arguments{"--case", one.name, "--json", file.string(), "--spirv", options.spirv};
  if (!options.device.empty()) arguments.insert(arguments.end(), {"--device", options.device});
  if (!options.plant.empty()) arguments.insert(arguments.end(), {"--plant", options.plant});
  if (!options.replace.empty()) arguments.insert(arguments.end(), {"--replace", options.replace});
  if (options.keep) arguments.emplace_back("--keep");
  if (options.full) arguments.emplace_back("--full");
  fs::remove(file);
  const auto begin = Clock::now();
  const Ended ended = run_self(arguments, limit);
  if (fs::exists(file) && (ended.code == 0 || ended.code == 1)) {
    const Report report = read_report(file);
    if (whole.device.empty()) {
      const std::string mode = std::exchange(whole.mode, "");
      whole = report;
      whole.mode = mode;
      whole.cases.clear();
    }
    return report.cases.at(0);
  }
  CaseReport report{one.name, one.what, Verdict::crashed};
  report.seconds = seconds_since(begin);
  report.command = command_of(one, options);
  // Later a device that cannot be opened any more is a verdict: of a driver that did not survive the case before.
  if (const std::string last = last_line(ended.output); ended.code == 2 && (whole.device.empty() || is_of_files(last)))
    throw Error(last);
  report.faults.push_back(
      ended.too_long ? fmt::format("it did not end within {} s", limit.count())
      : ended.signal != 0
          ? fmt::format("the process was ended by signal {} ({}); it said: {}", ended.signal, strsignal(ended.signal),
                        last_line(ended.output))
          : fmt::format("the process ended with status {}; it said: {}", ended.code, last_line(ended.output)));
  if (const fs::path kept = given_kernel_of(options.spirv); !kept.empty()) {
    report.kernel = kept.stem().string();
    report.spirv = kept.string();
    report.faults.push_back(fmt::format("the last kernel that the driver got was {}", report.kernel));
  }
  return report;
}

bool is_wanted(const Case& one, const Options& options) {
  return one.wanted == Wanted::quick || options.full || (!options.quick && one.wanted == Wanted::normal);
}

/// Those that are named, or all that are wanted.
std::vector<const Case*> chosen_cases(const Options& options) {
  std::vector<const Case*> cases;
  for (const std::string& name : options.cases) cases.push_back(&case_called(name));
  if (!cases.empty()) return cases;
  for (const Case& one : all_cases()) {
    if (is_wanted(one, options)) cases.push_back(&one);
  }
  return cases;
}

Report run_all(const std::vector<const Case*>& chosen, const Options& options) {
  const bool named = !options.cases.empty();
  Report report{.version = std::string(version()),
                .mode = named           ? "cases"
                        : options.quick ? "quick"
                        : options.full  ? "full"
                                        : "normal"};
  const auto begin = Clock::now();
  const fs::path file = fs::temp_directory_path() / fmt::format("halfstep-selftest-{}.json", getpid());
  std::vector<CaseReport> cases;
  for (const Case* const one : chosen) {
    cases.push_back(run_apart(*one, options, file, report));
    print(cases.back());
    if (named) print_details(cases.back());
  }
  fs::remove(file);
  report.cases = std::move(cases);
  report.seconds = seconds_since(begin);
  return report;
}

Report run_alone(const Case& one, const Options& options) {
  Report report{.version = std::string(version()), .mode = "cases"};
  const auto begin = Clock::now();
  describe_device(report);
  report.cases.push_back(run_here(one, options));
  if (!has_used_file()) report.cases.back().facts.push_back("the driver was not given " + options.replace);
  print(report.cases.back());
  print_details(report.cases.back());
  report.seconds = seconds_since(begin);
  return report;
}

void print_summary(const Report& report) {
  fmt::print("\n{}, {}\n", report.device, report.driver);
  for (const Verdict verdict : {Verdict::right, Verdict::slow, Verdict::missing, Verdict::wrong, Verdict::crashed}) {
    const auto count = std::ranges::count(report.cases, verdict, &CaseReport::verdict);
    if (count > 0) fmt::print("{:>5} {}\n", count, name(verdict));
  }
  for (const std::string& one : report.avoided) fmt::print("Halfstep avoids: {}\n", one);
  fmt::print("{:.0f} s\n", report.seconds);
}

/// Runs the dispatches that a file describes.
int run_kernel(const fs::path& file) {
  const Reproduction kept = read_reproduction(file);
  const std::string wrong = objection(kept);
  const DeviceInfo& info = testing::device().info();
  fmt::print("{:<8} {} ({}, {})\n", wrong.empty() ? "right" : "wrong", kept.what, info.name, info.driver);
  if (!wrong.empty()) fmt::print("         {}\n", wrong);
  for (const plan::Dispatch& dispatch : kept.program.dispatches)
    fmt::print("         {} {}\n", dispatch.label, dispatch.shader);
  return wrong.empty() ? 0 : 1;
}

int run(const Options& options) {
  if (!options.compare.empty()) {
    fmt::print("{}", comparison(read_report(options.compare[0]), read_report(options.compare[1])));
    return 0;
  }
  if (options.list_planted) {
    for (const Planted& fault : planted_faults()) fmt::print("{}\t{}\t{}\n", fault.name, fault.found_by, fault.what);
    return 0;
  }
  if (options.list) {
    for (const Case& one : all_cases()) fmt::print("{}\n", one.name);
    return 0;
  }
  if (!options.device.empty()) setenv("HALFSTEP_DEVICE", options.device.c_str(), 1);
  if (options.full) setenv("HALFSTEP_EVERY_VARIANT", "1", 1);  // of operators, on software drivers too
  // What is found out about changed kernels is no verdict on the driver's.
  if (!options.plant.empty() || !options.replace.empty()) setenv("HALFSTEP_CACHE", "off", 1);
  if (!options.plant.empty()) plant(options.plant);
  if (!options.replace.empty()) replace_kernel_by_file(options.replace);
  if (!options.kernel.empty()) return run_kernel(options.kernel);
  for (const fs::path file : {options.json, options.html}) {
    if (!file.empty()) check_writable(file);  // before minutes of cases
  }
  if (!options.json.empty() && !options.html.empty() && written_file(options.json) == written_file(options.html))
    throw Error(fmt::format("[selftest] expected another file for --html than for --json, got {}", options.html));
  keep_dispatches({options.spirv, options.keep});
  const std::vector<const Case*> cases = chosen_cases(options);
  const bool alone = options.cases.size() == 1;
  if (alone) keep_given_kernels(options.spirv);
  const Report report = alone ? run_alone(*cases[0], options) : run_all(cases, options);
  if (options.cases.empty()) print_summary(report);
  if (!options.json.empty()) write_text(options.json, json_text(report));
  if (!options.html.empty()) write_text(options.html, html_page(report));
  return exit_code(report);
}

Options parsed(CLI::App& app, int argc, char** argv) {
  Options options;
  app.add_option("--device", options.device, "The device: its number, or a part of its name");
  auto* quick = app.add_flag("--quick", options.quick, "The main cases only, in under a minute on a processor");
  app.add_flag("--full", options.full,
               "Also every variant of every operator, large buffers, tensors beyond every limit, and load for a minute")
      ->excludes(quick);
  app.add_option("--json", options.json, "Write a report that programs read, fit for a driver's bug tracker");
  app.add_option("--html", options.html, "Write a report that people read, one page");
  app.add_option("--case", options.cases,
                 "Run only this case, in this process; of several, each in a process of its own");
  app.add_flag("--list", options.list, "List the cases");
  app.add_option("--compare", options.compare, "Compare two reports of --json")->expected(2);
  app.add_option("--spirv", options.spirv,
                 "The folder for kernels that are wrong: SPIR-V, and for --kernel what it gets")
      ->capture_default_str();
  app.add_flag("--keep", options.keep,
               "Also keep the dispatches of operators that are right, the largest in each type");
  app.add_option("--kernel", options.kernel, "Run only the kept dispatches that this JSON file describes");
  app.add_option("--replace", options.replace, "KERNEL=FILE.spv: use other SPIR-V for one of the self-test's kernels");
  app.add_option("--plant", options.plant, "Plant a fault of --list-planted in the shaders, to test the self-test");
  app.add_flag("--list-planted", options.list_planted,
               "List the faults that can be planted, with the case that finds each");
  // What runs no case.
  const std::initializer_list<std::string> others{"--list", "--list-planted", "--compare", "--kernel"};
  for (const std::string& other : others) {
    CLI::Option* const option = app.get_option(other);
    for (const char* const flag : {"--quick", "--full", "--case", "--json", "--html", "--keep"})
      option->excludes(app.get_option(flag));
    for (const std::string& one : others) {
      if (one != other) option->excludes(app.get_option(one));
    }
  }
  app.parse(argc, argv);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Tests what a GPU and its driver compute of what training needs. Exit status: 0 if nothing is wrong, 1 if "
      "something is, 2 if it could not run.");
  try {
    const int code = run(parsed(app, argc, argv));
    testing::close_device();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw Error("[selftest] cannot write standard output: some of it is lost");
    }
    return code;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fflush(stdout);  // the error comes last where both streams are one
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
