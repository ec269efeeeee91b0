#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>

/// A new folder for one test; the destructor removes it with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<unsigned> made = 0;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    do {
      const std::string name = "halfstep-test-" + std::to_string(now) + "-" + std::to_string(made++);
      path_ = std::filesystem::temp_directory_path() / name;
    } while (!std::filesystem::create_directory(path_));
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};
