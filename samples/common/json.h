#pragma once

#include <nlohmann/json.hpp>

#include <utility>

namespace samples {

/// JSON from a file: a discarded value where it is none, or is nested deeper than any that is read here. Printing and
/// copying are recursive, and would exceed the stack.
template <typename Json = nlohmann::json, typename Input>
Json parse_json(Input&& input) {
  constexpr int deepest = 64;
  bool too_deep = false;
  const auto look = [&](int depth, typename Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > deepest;
    return !too_deep;
  };
  Json json = Json::parse(std::forward<Input>(input), look, false);
  return too_deep ? Json(Json::value_t::discarded) : json;
}

}  // namespace samples
