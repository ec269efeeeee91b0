#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

#include "samples/common/ranks.h"

namespace samples {

/// Prints to standard output and flushes it; only on rank 0. A failed write (closed terminal, full disk) does not stop
/// training: run_program reports it at the end.
template <typename... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  if (!is_first_rank()) return;
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
  static_cast<void>(std::fflush(stdout));
}

}  // namespace samples
