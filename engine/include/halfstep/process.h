#pragma once

#include <halfstep/language.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Everything that is not portable C++: files that survive a crash, signals, the terminal, the environment.
namespace halfstep {

/// The bytes of a trivially copyable value or array, to be written to a file.
using Bytes = std::span<const std::byte>;

/// Atomically replaces the contents of `file` by the concatenation of `parts`: writes a temporary file in the same
/// folder, syncs it and renames it. On failure the temporary is removed, the previous contents of `file` remain, and
/// Error names the file and the system's reason. Follows symbolic links, even to a file that does not exist yet.
/// Refuses a file that is read-only or not a regular file. Also removes temporaries in the same folder that were left
/// by killed processes of this user. May block until the data is on disk. May be called from several threads; where
/// more than 64 write at a time, the others wait.
HALFSTEP_API void write_atomically(const std::filesystem::path& file, std::span<const Bytes> parts);

/// Throws the Error that write_atomically would throw for a folder that is missing or not writable, or for a file that
/// may not be replaced. A long run can call this before it starts. Leaves no file behind.
HALFSTEP_API void check_writable(const std::filesystem::path& file);

/// The absolute path of the file that a write to `file` creates or replaces, with symbolic links, "." and ".."
/// resolved. Two spellings of one file give the same path. Throws Error if the path cannot be a file: it is a folder, a
/// device or read-only, has no file name, or is beneath a file. Its folder need not exist.
HALFSTEP_API std::filesystem::path written_file(const std::filesystem::path& file);

/// The folder for files that can be regenerated, created if needed: $HALFSTEP_CACHE, or "halfstep" in the user's cache
/// folder. Empty if HALFSTEP_CACHE is "off", or if there is no such folder; then nothing is cached.
HALFSTEP_API std::filesystem::path cache_folder();

/// The value of an environment variable; no value if it is unset or empty.
HALFSTEP_API std::optional<std::string> environment(const std::string& variable);

/// After this call, Ctrl-C (SIGINT), SIGTERM and SIGHUP still end the process immediately, by the signal, but first
/// remove the temporaries of files being written; threads that write them then stand still. SIGHUP stays ignored if the
/// process was started that way (nohup). A write beyond the user's file size limit then fails instead of ending the
/// process. Also ends what watch_interrupts() began.
HALFSTEP_API void clean_up_on_interrupt();
/// Likewise, but the first of these signals only makes interrupted() return true, so that the current work can be
/// finished and saved. A second SIGINT or SIGTERM ends the process immediately. A write to a closed pipe then fails
/// instead of ending the process. Each call begins anew: what was interrupted before it no longer counts.
HALFSTEP_API void watch_interrupts();
HALFSTEP_API bool interrupted();
/// The number of the first signal since watch_interrupts(); 0 if there was none.
HALFSTEP_API int interrupt_signal();

/// Opens the null device in the place of each standard stream that is closed. A program should call this before it
/// opens anything: what it opens later, drivers' files included, would get that stream's place, and all that is
/// printed.
HALFSTEP_API void open_standard_streams();

enum class Stream : bool { output, error };

/// Whether standard output, or standard error, is a terminal rather than a file or a pipe.
HALFSTEP_API bool is_terminal(Stream stream);
/// The width in columns of the terminal behind `stream`; 80 if it is not a terminal.
HALFSTEP_API int terminal_width(Stream stream);

}  // namespace halfstep
