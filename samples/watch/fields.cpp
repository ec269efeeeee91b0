#include "samples/watch/fields.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace samples {

double number(const Record& record, const std::string& key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return std::numeric_limits<double>::quiet_NaN();
  return found->get<double>();
}

double amount(const Record& record, const std::string& key) {
  const double value = number(record, key);
  return std::isfinite(value) ? value : 0;
}

std::string text(const Record& record, const std::string& key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

const Record& inside(const Record& record, const char* key) {
  static const Record none = Record::array();
  const auto found = record.find(key);
  return found != record.end() && found->is_structured() ? *found : none;
}

}  // namespace samples
