#include <algorithm>

#include "vk/optimize/grammar.h"
#include "vk/optimize/module.h"
#include "vk/optimize/well_formed.h"

namespace halfstep::vk::ir {
namespace {

constexpr std::uint32_t magic = 0x07230203;
constexpr std::size_t header_words = 5;
constexpr std::uint32_t most_ids = 1U << 22;  // as the specification limits them

bool is_terminator(std::uint32_t opcode) {
  return opcode >= op_branch && opcode <= op_unreachable;
}

/// Where a program comes from, which no driver needs.
bool tells_source(std::uint32_t opcode) {
  return (opcode >= op_source_continued && opcode <= op_source_extension) || opcode == op_string || opcode == op_line ||
         opcode == op_no_line || opcode == op_module_processed;
}

bool is_decoration(std::uint32_t opcode) {
  return opcode == op_decorate || opcode == op_member_decorate || opcode == op_decorate_id;
}

class Reader {
 public:
  /// Takes one instruction; returns whether it may be there.
  bool take(Instruction i) {
    if (tells_source(i.opcode)) return true;
    if (function_ != nullptr) return take_in_function(std::move(i));
    if (i.opcode == op_function) {
      module.functions.push_back({std::move(i)});
      function_ = &module.functions.back();
      return true;
    }
    if (i.opcode == op_name || i.opcode == op_member_name) {
      module.names[i.operands[0]].push_back(std::move(i));
    } else if (is_decoration(i.opcode)) {
      module.decorations[i.operands[0]].push_back(std::move(i));
    } else if (is_global(i.opcode)) {
      globals.push_back(std::move(i));
    } else if (!module.functions.empty() || !globals.empty() || !is_preamble(i.opcode)) {
      return false;
    } else {
      module.preamble.push_back(std::move(i));
    }
    return true;
  }
  bool complete() const { return function_ == nullptr; }

  Module module;
  std::vector<Instruction> globals;

 private:
  bool take_in_function(Instruction i) {
    if (i.opcode == op_function_end) {
      function_ = nullptr;
      return !open_;
    }
    if (i.opcode == op_function_parameter) {
      function_->parameters.push_back(std::move(i));
      return function_->blocks.empty();
    }
    if (i.opcode == op_label) {
      if (open_) return false;
      function_->blocks.push_back({i.result});
      open_ = true;
      return true;
    }
    if (!open_) return false;
    open_ = !is_terminator(i.opcode);
    function_->blocks.back().code.push_back(std::move(i));
    return true;
  }

  Function* function_ = nullptr;
  bool open_ = false;  ///< whether the last block has no terminator yet
};

/// The instruction at the beginning of the words; nothing if it is unknown or has not the operands that it should.
std::optional<Instruction> decoded(std::span<const std::uint32_t> words) {
  Instruction i{words[0] & 0xffff};
  const Grammar& known = grammar(i.opcode);
  const std::size_t before = std::size_t{1} + known.has_type + known.has_result;
  if (!known.known || words.size() < before) return std::nullopt;
  if (known.has_type) i.type = words[1];
  if (known.has_result) i.result = words[before - 1];
  i.operands.assign(words.begin() + static_cast<std::ptrdiff_t>(before), words.end());
  if (!visit_ids(i, known.operands, 0, [](std::size_t) {})) return std::nullopt;
  return i;
}

}  // namespace

std::optional<Module> read(std::span<const std::uint32_t> words) {
  if (words.size() < header_words || words[0] != magic || words[3] > most_ids) return std::nullopt;
  Reader reader;
  std::copy_n(words.begin(), header_words, reader.module.header.begin());
  for (std::size_t at = header_words; at < words.size();) {
    const std::size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) return std::nullopt;
    std::optional<Instruction> i = decoded(words.subspan(at, length));
    if (!i || !reader.take(std::move(*i))) return std::nullopt;
    at += length;
  }
  if (!reader.complete() || !is_well_formed(reader.module, reader.globals)) return std::nullopt;
  for (Instruction& i : reader.globals) reader.module.append_global(std::move(i));
  return std::move(reader.module);
}

}  // namespace halfstep::vk::ir
