#include "spirv_text.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <sstream>

#include "vk/shader/spirv.h"

namespace {

struct Name {
  std::uint32_t opcode = 0;
  std::string_view operands{};
};

const std::map<std::string, Name, std::less<>>& names() {
  static const std::map<std::string, Name, std::less<>> all{
#define OPCODE(name, number, operands, effect) {#name, {number, operands}},
#include "vk/shader/opcodes.def"
#undef OPCODE
  };
  return all;
}

class Assembler {
 public:
  void line(const std::string& text) {
    std::istringstream words(text);
    std::string word;
    if (!(words >> word) || word[0] == ';') return;
    std::uint32_t result = 0;
    if (word[0] == '%') {
      result = id(word);
      words >> word >> word;  // the sign
    }
    const auto found = names().find(word);
    if (found == names().end()) FAIL(text);
    std::vector<std::uint32_t> operands;
    if (found->second.operands.starts_with('T')) operands.push_back(next(words));
    if (result != 0) operands.push_back(result);
    while (words >> word) operand(word, operands);
    code_.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | found->second.opcode);
    code_.insert(code_.end(), operands.begin(), operands.end());
  }

  std::vector<std::uint32_t> finish() {
    constexpr std::uint32_t version_1_3 = 0x10300;
    std::vector<std::uint32_t> all{0x07230203, version_1_3, 0, static_cast<std::uint32_t>(ids_.size() + 1), 0};
    all.insert(all.end(), code_.begin(), code_.end());
    return all;
  }

 private:
  std::uint32_t id(const std::string& name) {
    return ids_.emplace(name, static_cast<std::uint32_t>(ids_.size() + 1)).first->second;
  }
  std::uint32_t next(std::istringstream& words) {
    std::string word;
    words >> word;
    if (word.empty() || word[0] != '%') FAIL("expected an id, got ", word);
    return id(word);
  }
  void operand(const std::string& word, std::vector<std::uint32_t>& operands) {
    if (word[0] == '%') {
      operands.push_back(id(word));
    } else if (word[0] == '"') {
      const std::string text = word.substr(1, word.size() - 2);
      std::vector<std::uint32_t> packed(text.size() / 4 + 1, 0);
      std::memcpy(packed.data(), text.data(), text.size());
      operands.insert(operands.end(), packed.begin(), packed.end());
    } else {
      operands.push_back(static_cast<std::uint32_t>(std::stoll(word)));
    }
  }

  std::map<std::string, std::uint32_t> ids_;
  std::vector<std::uint32_t> code_;
};

}  // namespace

std::vector<std::uint32_t> assembled(std::string_view text) {
  Assembler assembler;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) assembler.line(line);
  return assembler.finish();
}

std::string shader_of(std::string_view decorations, std::string_view declarations, std::string_view functions) {
  return fmt::format(R"(capability 1
%glsl = ext_inst_import "GLSL.std.450"
memory_model 0 1
entry_point 5 %main "main"
execution_mode %main 17 1 1 1
decorate %ints 6 4
member_decorate %block 0 35 0
decorate %block 2
decorate %out 34 0
decorate %out 33 0
{}
%void = type_void
%bool = type_bool
%int = type_int 32 1
%uint = type_int 32 0
%float = type_float 32
%v4 = type_vector %float 4
%fn = type_function %void
%in_int = type_pointer 7 %int
%in_v4 = type_pointer 7 %v4
%i0 = constant %int 0
%i1 = constant %int 1
%i2 = constant %int 2
%i3 = constant %int 3
%i4 = constant %int 4
%true = constant_true %bool
%false = constant_false %bool
%ints = type_runtime_array %int
%block = type_struct %ints
%to_block = type_pointer 12 %block
%at = type_pointer 12 %int
%out = variable %to_block 12
{}
{})",
                     decorations, declarations, functions);
}

std::size_t count_of(const std::vector<std::uint32_t>& words, std::string_view name) {
  std::size_t count = 0;
  const std::uint32_t opcode = names().find(name)->second.opcode;
  halfstep::vk::for_each_instruction(words,
                                     [&](const halfstep::vk::Instruction& i) { count += i.opcode == opcode ? 1 : 0; });
  return count;
}
