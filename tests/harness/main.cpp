// Runs the tests that need a device. Afterwards, the validation layer must not have reported anything. The shader
// variants that were used are written to the file that HALFSTEP_USED_SHADERS names, so that the coverage of several
// runs (each driver, each tier) can be checked together:
//     device_tests --every-shader-in FILE...
#define DOCTEST_CONFIG_IMPLEMENT
#include <halfstep/error.h>
#include <halfstep/process.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "harness/device.h"
#include "harness/loop_limit.h"
#include "vk/device/instance.h"
#include "vk/device/loader.h"
#include "vk/device/settings.h"
#include "vk/device/validation.h"
#include "vk/shader/shaders.h"
#include "vk/shader/validate_spirv.h"

namespace {

using namespace halfstep;

/// Keeps drivers and layers loaded until the process ends, so that the leak checker can attribute leaks, and still
/// finds memory that they reach through their own globals.
void keep_libraries() {
  vk::child_without_drivers();  // which tests of devices with matrix units need
  try {
    vk::create_instance(true);  // and never destroyed
  } catch (const Error&) {
    // No Vulkan, or no layer: each test that needs it says so.
  }
}

/// A bus error, as an address that no pointer has gives on some processors: prints who called, then ends as an access
/// to memory that is not there does, on which doctest names the test. It does not know this signal.
void tell_bus_errors() {
#if defined(SIGBUS)
  std::signal(SIGBUS, [](int) {
#if __has_include(<execinfo.h>)
    void* calls[64];
    backtrace_symbols_fd(calls, backtrace(calls, 64), 2);
#endif
    std::raise(SIGSEGV);
  });
#endif
}

bool validation_was_silent() {
  const std::size_t messages = vk::validation_messages().size();
  if (messages > 0) fmt::print(stderr, "{} messages of the validation layer\n", messages);
  return messages == 0;
}

/// If HALFSTEP_LIMITS lowers the loop rounds that plans use, makes shaders enforce it: exceeding it gives wrong
/// results. Validates them before, as they were specialized.
void limit_loops() {
  const vk::Limits limits = vk::settings({}).limits;
  const auto limit = limits.find("loop_rounds");
  if (limit == limits.end()) return;
  const auto rounds = static_cast<std::uint32_t>(limit->second);
  vk::patch_shaders([rounds](std::string_view name, const std::vector<std::uint32_t>& words) {
    vk::check_spirv(words, name);
    return testing::with_loop_limit(words, rounds);
  });
}

/// Sees whether filters left a test case to run. Where they are only listed, no run ends.
struct RunListener : doctest::IReporter {
  static inline bool ran_nothing = false;

  explicit RunListener(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    ran_nothing = stats.numTestCasesPassingFilters == 0;
  }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("run", 1, RunListener);

/// If HALFSTEP_COUNTED_ROUNDS is set, makes each shader end its loops after the rounds that its dispatch counts: one
/// that counts fewer than it runs gives wrong results, as it would where a driver's limit cuts it into parts.
void limit_loops_as_counted() {
  if (!environment("HALFSTEP_COUNTED_ROUNDS")) return;
  constexpr std::uint32_t of_any_size = 100;  // where a dispatch counts none: see vk::Limits
  vk::patch_rounds([](const std::vector<std::uint32_t>& words, std::int64_t rounds) {
    return testing::with_loop_limit(words, rounds > 0 ? static_cast<std::uint32_t>(rounds) : of_any_size);
  });
}

void write_used_shaders() {
  const auto path = environment("HALFSTEP_USED_SHADERS");
  if (!path) return;
  std::ofstream file(*path);
  for (const std::string& name : vk::used_shaders()) file << name << '\n';
}

int check_every_shader(std::span<char*> files) {
  std::set<std::string, std::less<>> used;
  for (const char* path : files) {
    std::ifstream file(path);
    for (std::string name; std::getline(file, name);) used.insert(name);
  }
  int unused = 0;
  for (const std::string_view name : vk::shader_names()) {
    if (used.contains(name)) continue;
    fmt::print(stderr, "no test used the shader variant {}\n", name);
    ++unused;
  }
  fmt::print("{} of {} shader variants were used\n", vk::shader_names().size() - static_cast<std::size_t>(unused),
             vk::shader_names().size());
  return unused == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  if (argc > 1 && std::string_view(argv[1]) == "--every-shader-in") return check_every_shader(arguments.subspan(2));
  keep_libraries();
  tell_bus_errors();
  try {
    limit_loops();
    limit_loops_as_counted();
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
  const int result = doctest::Context(argc, argv).run();
  write_used_shaders();
  testing::close_device();
  if (RunListener::ran_nothing) fmt::print(stderr, "error: expected filters that leave a test case to run\n");
  return validation_was_silent() && !RunListener::ran_nothing ? result : 1;
}
