// The tests of operators and of whole trainings, which are doctest's, as cases.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "graph/dtype.h"
#include "harness/observe.h"
#include "selftest/cases.h"
#include "selftest/reproduction.h"

namespace halfstep::selftest {
namespace {

/// One of doctest's test cases.
struct Test {
  std::string file;
  std::string name;
};

/// Where doctest tells what it finds; it makes the reporter itself.
struct Listener {
  std::vector<Test>* tests = nullptr;
  CaseReport* report = nullptr;
};
Listener listener;

class Reporter : public doctest::IReporter {
 public:
  explicit Reporter(const doctest::ContextOptions& /*options*/) {}
  void report_query(const doctest::QueryData& data) override {
    for (unsigned i = 0; i < data.num_data && listener.tests != nullptr; ++i)
      listener.tests->push_back({data.data[i]->m_file.c_str(), data.data[i]->m_name});
  }
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    if (stats.numTestCasesPassingFilters != 1) return add("expected one test of this name, got another number");
    if (stats.numAsserts == 0 && listener.report != nullptr && listener.report->faults.empty())
      set_missing(*listener.report, "the test has nothing to check on this device");
  }
  void test_case_start(const doctest::TestCaseData& /*test*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*test*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {}
  void test_case_exception(const doctest::TestCaseException& error) override { add(error.error_string.c_str()); }
  void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& assert) override {
    if (!assert.m_failed) return;
    // Of a check whose message has the number, or that follows one which tells the first.
    if (std::string_view(assert.m_expr) == "wrong == 0") return add(std::exchange(remark_, ""));
    add(assert.m_threw ? fmt::format("{}: {}", assert.m_expr, assert.m_exception.c_str())
                       : fmt::format("{} ({})", assert.m_expr, assert.m_decomp.c_str()));
  }
  void log_message(const doctest::MessageData& message) override {
    if ((message.m_severity & (doctest::assertType::is_check | doctest::assertType::is_require)) != 0)
      return add(message.m_string.c_str());
    remark_ = message.m_string.c_str();
  }
  void test_case_skipped(const doctest::TestCaseData& /*test*/) override {}

 private:
  std::string remark_;

  void add(const std::string& text) {
    if (listener.report == nullptr) return;
    std::ostringstream where;
    const auto* const contexts = get_active_contexts();
    for (int i = 0; i < get_num_active_contexts(); ++i) {
      contexts[i]->stringify(&where);
      where << (text.empty() && i + 1 == get_num_active_contexts() ? "" : ": ");
    }
    constexpr std::size_t most = 20;
    if (listener.report->faults.size() < most) add_fault(*listener.report, where.str() + text);
  }
};

REGISTER_REPORTER("selftest", 0, Reporter);

std::vector<Test> listed() {
  std::vector<Test> tests;
  listener = {.tests = &tests};
  doctest::Context context;
  const std::array arguments{"selftest", "--list-test-cases", "--reporters=selftest"};
  context.applyCommandLine(static_cast<int>(arguments.size()), arguments.data());
  context.run();
  listener = {};
  return tests;
}

/// doctest's filter for a name: commas would separate filters.
std::string filter_of(std::string text) {
  std::ranges::replace(text, ',', '?');
  return text;
}

void note(CaseReport& report, const testing::Comparison& found) {
  const std::string of = fmt::format("{}, {} in {}", found.check, found.what, name(found.dtype));
  const std::string inputs = found.inputs.empty() ? "" : fmt::format(" of ({})", found.inputs);
  const LargestError error{
      of, found.ulps, 0, found.share,
      fmt::format("element {}{} is {:.9g}, exactly {:.9g}", found.index, inputs, found.got, found.want)};
  const auto same = std::ranges::find(report.errors, of, &LargestError::of);
  if (same == report.errors.end()) {
    report.errors.push_back(error);
  } else if (same->share < error.share) {
    *same = error;
  }
}

Keeping& keeping() {
  static Keeping wanted;
  return wanted;
}

/// A name of letters and digits.
std::string file_name(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text.substr(0, 80);
}

/// What was kept of a case.
struct Kept {
  bool wrong = false;
  std::map<DType, std::size_t> right{};  ///< elements of the results that are right
};

/// Keeps the first dispatches of a case that are wrong; before that, if all are wanted, those of each type with the
/// most results: the first may be of one element, which tells nothing.
void keep(CaseReport& report, const testing::Comparison& found, const testing::ObservedRun& run, Kept& kept) {
  const bool wrong = found.wrong > 0;
  if (keeping().folder.empty() || kept.wrong || !(wrong || keeping().all)) return;
  std::size_t& most = kept.right[found.dtype];
  if (!wrong && run.want.size() <= most) return;
  most = run.want.size();
  kept.wrong = wrong;
  const std::string what = fmt::format("{}, {} in {}", found.check, found.what, name(found.dtype));
  const std::string file = fmt::format("{}_{}", file_name(report.name), name(found.dtype));
  report.dispatch = write(reproduction_of(what, run), keeping().folder, file).string();
}

void run_test(CaseReport& report, const Test& test) {
  listener = {.report = &report};
  Kept kept;
  testing::observe([&](const testing::Comparison& found, const testing::ObservedRun& run) {
    note(report, found);
    keep(report, found, run, kept);
  });
  doctest::Context context;
  context.setOption("reporters", "selftest");
  context.setOption("test-case", filter_of(test.name).c_str());
  context.setOption("source-file", ("*" + std::filesystem::path(test.file).filename().string()).c_str());
  context.run();
  testing::observe({});
  listener = {};
}

/// The tests that --quick runs too: an operator of each kind, forward and backward.
bool is_quick(const std::string& name) {
  static constexpr std::array quick{"gradients of activations and scale",
                                    "softmax and its logarithm",
                                    "gradients of softmax and its logarithm",
                                    "gradient of batch norm",
                                    "gradients of layer norm and RMS norm",
                                    "max pooling",
                                    "cross-entropy",
                                    "gradient of cross-entropy",
                                    "weight gradient of conv2d",
                                    "sum and mean over any axes",
                                    "attention in parts of few loop rounds gives the same as in one, on GPUs too",
                                    "gradient of embedding: sums over the positions of each row",
                                    "the larger and the smaller of two numbers are NaN if either is",
                                    "rounding to nearest: every number, every tie, every neighbour",
                                    "every pattern of 16 bits widens to the number it stands for"};
  return std::ranges::find(quick, name) != quick.end();
}

/// Tests of sizes that take minutes.
bool is_long(const std::string& name) {
  return name.find("beyond the limits") != std::string::npos || name.find("151,936") != std::string::npos ||
         name.find("a million") != std::string::npos;
}

/// The trainings with known losses, by PyTorch's and Hugging Face's numbers, in f32 and mixed precision.
const std::map<std::string, std::string>& trainings() {
  static const std::map<std::string, std::string> all{
      {"ResNet-8 is PyTorch's, in one step and in ten", "ResNet-8"},
      {"ResNet-18 is PyTorch's, in one step and in ten", "ResNet-18"},
      {"MobileNetV2 is PyTorch's in one step", "MobileNetV2"},
      {"GPT-2 is Hugging Face's, in one step and in ten", "GPT-2"},
      {"BERT is Hugging Face's, in one step and in ten, with padding and two types of tokens", "BERT"}};
  return all;
}

/// "pool2d" of tests/ops/test_pool2d.cpp.
std::string family(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return stem.starts_with("test_") ? stem.substr(5) : stem;
}

}  // namespace

void keep_dispatches(const Keeping& wanted) {
  keeping() = wanted;
}

std::vector<Case> operator_cases() {
  std::vector<Case> operators;
  std::vector<Case> whole;
  for (const Test& test : listed()) {
    const auto run = [test](CaseReport& report) { run_test(report, test); };
    if (const auto training = trainings().find(test.name); training != trainings().end()) {
      whole.push_back({"training/" + training->second, "Losses and gradients: " + test.name, Wanted::normal, run});
    } else if (test.file.find("tests/ops/") != std::string::npos) {
      const Wanted wanted = is_quick(test.name) ? Wanted::quick : is_long(test.name) ? Wanted::full : Wanted::normal;
      operators.push_back({fmt::format("operator/{}: {}", family(test.file), test.name),
                           "In every precision, in the report's tier, against a reference in double", wanted, run});
    }
  }
  std::ranges::move(whole, std::back_inserter(operators));
  return operators;
}

}  // namespace halfstep::selftest
