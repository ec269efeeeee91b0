#include "samples/watch/log.h"

#include <halfstep/halfstep.h>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "samples/common/json.h"
#include "samples/watch/write_error.h"

namespace samples {
namespace {

/// Whether a file has contents whose last line has no end.
bool ends_within_line(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in.seekg(-1, std::ios::end)) return false;
  return in.get() != '\n';
}

/// The next line, without its end. Of one that is longer than any record, it takes the start, which is no record.
bool read_line(std::ifstream& in, std::string& line) {
  constexpr std::size_t longest = 1 << 24;
  line.clear();
  for (char byte = 0; in.get(byte);) {
    if (byte == '\n') return true;
    if (line.size() < longest) line += byte;
  }
  return !line.empty();
}

/// The step that a record is of: 0 where it is of none.
std::uint64_t step_of(const Record& record) {
  const auto step = record.find("step");
  return step != record.end() && step->is_number_unsigned() ? step->get<std::uint64_t>() : 0;
}

}  // namespace

Log::Log(const std::filesystem::path& file, bool appending) : path_(file) {
  const bool torn = appending && ends_within_line(file);
  if (!appending) std::ofstream(file, std::ios::binary);  // empties it
  errno = 0;
  // Appending, a line begins where the file ends, also after another run wrote to it, or after it was emptied.
  file_.reset(std::fopen(file.string().c_str(), "ab"));
  if (!file_) fail_to("open", file);
  constexpr std::size_t longest = 1 << 16;  // of a line that is written at once
  std::setvbuf(file_.get(), nullptr, _IOFBF, longest);
  if (torn) std::fputc('\n', file_.get());
}

void Log::write(const Record& record) {
  const std::string line = line_of(record) + "\n";
  errno = 0;
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
  if (std::fflush(file_.get()) != 0 || !written) fail_to("write to", path_);
}

bool has_line(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  return std::getline(in, line) && !in.eof();
}

void go_back_to(std::uint64_t step, std::vector<Record>& records) {
  std::erase_if(records, [&](const Record& record) { return step_of(record) > step; });
}

std::vector<Record> read_log(const std::filesystem::path& file) {
  std::error_code error;
  std::ifstream in;
  // Others may have no end, or wait for who writes to them.
  if (std::filesystem::is_regular_file(file, error)) in.open(file, std::ios::binary);
  if (!in.is_open()) {
    halfstep::fail(halfstep::ErrorCode::bad_file, file.string(),
                   "expected a log, an ordinary file that can be read, got none", "--log writes one");
  }
  std::vector<Record> records;
  for (std::string line; read_line(in, line);) {
    Record record = parse_json<Record>(line);
    const bool sound = record.is_object() && record.contains("kind") && record["kind"].is_string();
    if (!sound) continue;
    if (record["kind"] == "start") go_back_to(step_of(record), records);
    records.push_back(std::move(record));
  }
  if (in.bad()) {
    halfstep::fail(halfstep::ErrorCode::bad_file, file.string(),
                   "expected a log, got one that cannot be read to its end");
  }
  if (records.empty()) {
    halfstep::fail(halfstep::ErrorCode::bad_file, file.string(), "expected JSON lines of a training, got none",
                   "--log writes them");
  }
  return records;
}

}  // namespace samples
