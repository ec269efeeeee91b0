#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "samples/watch/records.h"

namespace samples {

/// A file of JSON lines, one for each record. Each line is handed to the system as soon as it is written, so a run that
/// is killed leaves whole lines, and at most a part of one at the end.
///
/// A run that goes on appends to the file of the run before. That one may have come further than the checkpoint: its
/// records of steps after the "step" of the new run's "start" no longer count, which read_log() sees to.
class Log : public Sink {
 public:
  /// Begins the file anew, or appends where `appending`, on a new line. Throws Error where it cannot be opened.
  Log(const std::filesystem::path& file, bool appending);
  void write(const Record& record) override;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// Whether a file has a whole line. The log of a run whose disk was full may have none.
bool has_line(const std::filesystem::path& file);

/// The records of a log that count. Lines that are no records, such as one that a killed run left unfinished, are
/// left out. Throws Error where the file cannot be read, or no line is a record.
std::vector<Record> read_log(const std::filesystem::path& file);

/// Removes the records of later steps, which count no more where a run goes on from `step`.
void go_back_to(std::uint64_t step, std::vector<Record>& records);

}  // namespace samples
