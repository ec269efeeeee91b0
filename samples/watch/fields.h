#pragma once

#include <string>

#include "samples/watch/records.h"

/// Reading the records of a log, which may have been changed, or be of another version: whatever they hold is fine.
namespace samples {

/// What is shown in place of a number that is NaN or infinite, which a log has as null.
inline constexpr const char* not_finite = "not finite";

/// The number at a key; NaN where there is none, or a null.
double number(const Record& record, const std::string& key);
/// The same, 0 where there is none.
double amount(const Record& record, const std::string& key);
/// The text at a key; empty where there is none.
std::string text(const Record& record, const std::string& key);
/// The list or object at a key; an empty list where there is neither.
const Record& inside(const Record& record, const char* key);

}  // namespace samples
