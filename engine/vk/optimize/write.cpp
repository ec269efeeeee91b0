#include "vk/optimize/grammar.h"
#include "vk/optimize/module.h"

namespace halfstep::vk::ir {
namespace {

class Writer {
 public:
  explicit Writer(const Module& module) : numbers_(module.bound(), 0) {
    words_.assign(module.header.begin(), module.header.end());
  }

  void add(const Instruction& i) {
    const std::size_t begin = words_.size();
    words_.push_back(0);
    if (i.type != 0) words_.push_back(number(i.type));
    if (i.result != 0) words_.push_back(number(i.result));
    const std::size_t operands = words_.size();
    words_.insert(words_.end(), i.operands.begin(), i.operands.end());
    visit_ids(i, grammar(i.opcode).operands, 0,
              [&](std::size_t at) { words_[operands + at] = number(i.operands[at]); });
    const std::size_t length = words_.size() - begin;
    fits_ = fits_ && length <= 0xffff;
    words_[begin] = static_cast<std::uint32_t>(length) << 16 | i.opcode;
  }
  void add_all(const std::map<Id, std::vector<Instruction>>& by_id) {
    for (const auto& [id, instructions] : by_id) {
      for (const Instruction& i : instructions) add(i);
    }
  }
  void add_function(const Function& f) {
    add(f.head);
    for (const Instruction& parameter : f.parameters) add(parameter);
    for (const Block& block : f.blocks) {
      add(Instruction{op_label, 0, block.label});
      for (const Instruction& i : block.code) add(i);
    }
    add(Instruction{op_function_end});
  }
  std::vector<std::uint32_t> finish() {
    if (!fits_) return {};
    words_[3] = next_;
    return std::move(words_);
  }

 private:
  std::uint32_t number(Id id) {
    if (numbers_[id] == 0) numbers_[id] = next_++;
    return numbers_[id];
  }

  std::vector<std::uint32_t> words_;
  std::vector<std::uint32_t> numbers_;  ///< of each id
  std::uint32_t next_ = 1;
  bool fits_ = true;  ///< whether all instructions are short enough
};

}  // namespace

std::vector<std::uint32_t> write(const Module& module) {
  Writer writer(module);
  for (const Instruction& i : module.preamble) writer.add(i);
  writer.add_all(module.names);
  writer.add_all(module.decorations);
  for (const Instruction& i : module.globals()) writer.add(i);
  for (const Function& f : module.functions) writer.add_function(f);
  return writer.finish();
}

}  // namespace halfstep::vk::ir
