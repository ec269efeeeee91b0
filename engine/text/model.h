#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace halfstep::text {

/// How text between special tokens becomes tokens. Values that never change: any number of threads may
/// use one.
class Model {
 public:
  virtual ~Model() = default;

  virtual const Vocabulary& vocabulary() const = 0;
  /// Appends the tokens of a text in UTF-8.
  virtual void encode(std::string_view text, std::vector<std::uint32_t>& tokens) const = 0;
  /// Its members of a tokenizer.json.
  virtual void describe(nlohmann::ordered_json& file) const = 0;
};

}  // namespace halfstep::text
