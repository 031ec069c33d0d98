// The library's log: whole lines to stderr or to a file, written at once, never to stdout. PKCOMM_LOG chooses the
// level (warn unless set), PKCOMM_LOG_FILE the file. Any thread may call these at any time, in static destructors and
// after fork() too; nothing is thrown, errno stays, no thread is made.
#pragma once

#include <string_view>

#include "base/status.hpp"

namespace pkcomm {

/// In the order of PKCOMM_LOG's choices in base/environment_table.hpp.
enum class LogLevel { kError, kWarn, kInfo, kDebug };

/// Whether a line of this level would be written; to be asked before an expensive message is put together.
bool log_enabled(LogLevel level) noexcept;

/// One line. Line breaks inside `message` are written as "\n", so that a line is always a record.
void log(LogLevel level, std::string_view message) noexcept;

/// As log(), but only the first time in this process that `key` is given.
void log_once(std::string_view key, LogLevel level, std::string_view message) noexcept;

/// For destructors, which cannot pass an error up: a failure becomes a warning.
void log_if_failed(const Status& status) noexcept;

}  // namespace pkcomm
