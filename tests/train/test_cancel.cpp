// Compilation that is cancelled.
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "host/temporary_folder.h"
#include "train/small_training.h"

using namespace halfstep;

namespace {

const Dataset& samples() {
  static const Dataset set = testing::toy_dataset(40, {6, 5, 1}, 3);
  return set;
}

Trainer compiled(const Device& device, const std::function<bool()>& cancel) {
  return testing::toy_trainer(samples(), {.device = device, .change = [&](auto& all) { all.cancel = cancel; }});
}

Device with_cache(const std::filesystem::path& folder, Tuning tuning = Tuning::on) {
  return Device::open({}, {.tuning = tuning, .cache_folder = folder});
}

/// All that the files of a folder contain.
std::string contents(const std::filesystem::path& folder) {
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    all.append(std::istreambuf_iterator<char>(file), {});
  }
  return all;
}

std::vector<float> weights_after(Trainer trainer) {
  for (int i = 0; i < 3; ++i) trainer.step();
  return testing::toy_weights(trainer);
}

}  // namespace

TEST_CASE("compilation is cancelled before any kernel, and leaves no wrong verdict behind") {
  const TemporaryFolder folder, untouched;
  int kernels = 0;
  const std::vector<float> expected = weights_after(compiled(with_cache(untouched.path()), [&] {
    ++kernels;
    return false;
  }));
  REQUIRE(kernels > 5);
  for (const int last : {1, 2, kernels / 2}) {
    int asked = 0;
    try {
      compiled(with_cache(folder.path()), [&] { return ++asked == last; });
      FAIL("it was not cancelled");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::cancelled);
      CHECK(std::string(error.what()) == "[trainer] cancelled before all kernels were compiled");
      CHECK(asked == last);
    }
  }
  int asked = 0;
  Trainer trainer = compiled(with_cache(folder.path()), [&] {
    ++asked;
    return false;
  });
  const int while_compiled = asked;
  trainer.step();
  while (!trainer.run_for(std::chrono::microseconds(20))) {
  }
  trainer.evaluate(samples());
  CHECK(asked == while_compiled);
  CHECK(weights_after(compiled(with_cache(folder.path()), {})) == expected);
}

TEST_CASE("what an application throws when it is asked ends a compilation, and is no verdict on a kernel") {
  const TemporaryFolder folder, untouched;
  const std::vector<float> expected = weights_after(compiled(with_cache(untouched.path()), {}));
  for (const ErrorCode code : {ErrorCode::bad_argument, ErrorCode::out_of_memory}) {
    try {
      compiled(with_cache(folder.path(), Tuning::force), [&]() -> bool { throw Error("[app] no", code); });
      FAIL("it was compiled");
    } catch (const Error& error) {
      CHECK(error.code() == code);
      CHECK(std::string(error.what()) == "[app] no");
    }
  }
  CHECK_THROWS_AS(compiled(with_cache(folder.path()), []() -> bool { throw 5; }), int);
  CHECK(contents(folder.path()).find("[app] no") == std::string::npos);
  CHECK(weights_after(compiled(with_cache(folder.path()), {})) == expected);
}

TEST_CASE("another thread cancels a compilation") {
  const TemporaryFolder folder;
  std::atomic<bool> wanted = false, compiling = false, failed = false;
  ErrorCode code = ErrorCode::system;
  std::thread thread([&] {
    try {
      compiled(with_cache(folder.path()), [&] {
        compiling = true;
        while (!wanted) std::this_thread::yield();
        return true;
      });
    } catch (const Error& error) {
      code = error.code();
      failed = true;
    }
  });
  while (!compiling && !failed) std::this_thread::yield();
  wanted = true;
  thread.join();
  CHECK(code == ErrorCode::cancelled);
}
