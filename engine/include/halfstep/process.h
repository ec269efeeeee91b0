#pragma once

#include <halfstep/language.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The one place for what is not portable C++: files that survive a crash, signals, the terminal, the environment.
namespace halfstep {

/// The bytes of a trivially copyable value or array, to be written to a file.
using Bytes = std::span<const std::byte>;

/// Replaces `file` by `parts`, one after the other, all or nothing: they go to a temporary in the same folder, which is
/// synced and renamed. On failure the temporary is gone, what `file` held before is still there, and Error names the
/// file and the system's reason. Follows symbolic links, to a file that need not exist yet. Refuses a file that is
/// read-only, and anything that is not a regular file. Removes the temporaries of this user's processes that were
/// killed while they wrote to the same folder. May block until the disk has the bytes. May be called from several
/// threads.
HALFSTEP_API void write_atomically(const std::filesystem::path& file, std::span<const Bytes> parts);

/// Throws the Error that write_atomically would throw for a folder that is missing or that takes no new file, or for a
/// file that may not be replaced, so that a long run learns of it before it starts. Leaves nothing behind.
HALFSTEP_API void check_writable(const std::filesystem::path& file);

/// The absolute path of the file that a write to `file` creates or replaces: symbolic links are followed, "." and ".."
/// resolved. Two spellings of one file give the same path. Throws Error where it can be no file.
HALFSTEP_API std::filesystem::path written_file(const std::filesystem::path& file);

/// The folder for files that can be made again, created if need be: $HALFSTEP_CACHE, or "halfstep" in the user's cache
/// folder. Empty where none can be had; then nothing is cached.
HALFSTEP_API std::filesystem::path cache_folder();

/// The value of an environment variable; empty where it is not set or set to nothing.
HALFSTEP_API std::optional<std::string> environment(const std::string& variable);

/// From now on Ctrl-C (SIGINT), SIGTERM and SIGHUP still end the process at once, by the signal, but remove the
/// temporaries of files being written. SIGHUP stays ignored where the process was started so (nohup). A write past the
/// user's limit on file sizes fails from now on, and ends nothing.
HALFSTEP_API void clean_up_on_interrupt();
/// The same, but the first of these signals only sets what `interrupted` returns, so that the work in hand can be
/// finished and saved. A second SIGINT or SIGTERM ends the process at once. A write to a pipe that nobody reads any
/// more fails from now on, and ends nothing.
HALFSTEP_API void watch_interrupts();
HALFSTEP_API bool interrupted();
/// The number of the first signal since watch_interrupts(); 0 while there was none.
HALFSTEP_API int interrupt_signal();

enum class Stream : bool { output, error };

/// Whether standard output, or standard error, is a terminal rather than a file or a pipe.
HALFSTEP_API bool is_terminal(Stream stream);
/// Columns of the terminal that `stream` is; 80 where it is none.
HALFSTEP_API int terminal_width(Stream stream);

}  // namespace halfstep
