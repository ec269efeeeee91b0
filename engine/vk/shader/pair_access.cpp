#include "vk/shader/pair_access.h"

#include <map>
#include <set>

#include "vk/shader/additions.h"
#include "vk/shader/spirv.h"

namespace halfstep::vk {
namespace {

constexpr std::uint32_t storage_buffer = 12;
constexpr std::uint32_t decoration_coherent = 23;
constexpr std::uint32_t word_bits = 32;

/// Copies a module, and its accesses to quads as pairs of words.
class Rewriter {
 public:
  explicit Rewriter(std::span<const std::uint32_t> words) : added_(words) {
    bool in_functions = false;
    for_each_instruction(words, [&](const Instruction& i) {
      in_functions |= i.opcode == op_function;
      if (in_functions) {
        find(i);
      } else if (i.opcode == op_member_decorate && i.operand(3) == decoration_coherent) {
        coherent_.insert(i.operand(1));
      }
    });
    for (const std::uint32_t pointer : otherwise_used_) variables_.erase(pointer);
    for_each_instruction(words, [&](const Instruction& i) { visit(i); });
  }

  std::vector<std::uint32_t> finish() const { return added_.finish(body_); }

 private:
  /// Pairs of words in an element of a variable that is a block of nothing but an array of vectors of words; else 0.
  std::uint32_t pairs_of(std::uint32_t variable) const {
    const Declarations& module = added_.module();
    const auto found = module.variables.find(variable);
    if (found == module.variables.end() || module.types.at(found->second).at(1) != storage_buffer) return 0;
    const std::uint32_t block = module.pointee(found->second);
    const std::vector<std::uint32_t>& members = module.types.at(block);
    if (members[0] != op_type_struct || members.size() != 2 || coherent_.contains(block)) return 0;
    const std::vector<std::uint32_t>& array = module.types.at(members[1]);
    if (array[0] != op_type_runtime_array) return 0;
    const std::vector<std::uint32_t>& vector = module.types.at(array[1]);
    if (vector[0] != op_type_vector || vector[2] % 2 != 0) return 0;
    const std::vector<std::uint32_t>& part = module.types.at(vector[1]);
    const bool of_words = (part[0] == op_type_float || part[0] == op_type_int) && part[1] == word_bits;
    return of_words && module.stride(members[1]) == 4 * vector[2] ? vector[2] / 2 : 0;
  }

  void find(const Instruction& i) {
    const bool chain = i.opcode == op_access_chain || i.opcode == op_in_bounds_access_chain;
    if (chain && i.words.size() == 6 && pairs_of(i.operand(3)) != 0) {
      variables_[i.operand(2)] = i.operand(3);
      return;
    }
    const bool loads = i.opcode == op_load && i.words.size() == 4;
    const bool stores = i.opcode == op_store && i.words.size() == 3;
    if (loads || (stores && !variables_.contains(i.operand(2)))) return;
    // Numbers among the operands may be taken for ids, which only leaves an access as it is.
    for (const std::uint32_t word : i.words.subspan(stores ? 2 : 1)) otherwise_used_.insert(word);
  }

  void visit(const Instruction& i) {
    if (i.opcode == op_function) in_functions_ = true;
    if (!variables_.empty() && in_capabilities_ && i.opcode != op_capability) {
      in_capabilities_ = false;
      if (!has_int64_) append(body_, op_capability, {capability_int64});
    }
    has_int64_ |= i.opcode == op_capability && i.operand(1) == capability_int64;
    if (!in_functions_) return copy(i);
    const auto variable = [&](std::size_t operand) {
      const auto found = variables_.find(i.operand(operand));
      return found == variables_.end() ? 0 : found->second;
    };
    const bool chain = i.opcode == op_access_chain || i.opcode == op_in_bounds_access_chain;
    if (chain && variable(2) != 0) {
      const std::uint32_t of = variable(2);
      const std::uint32_t pointer = added_.type({op_type_pointer, storage_buffer, pair_type(of)});
      append(body_, i.opcode, {pointer, i.operand(2), as_pairs(of), i.operand(4), i.operand(5)});
    } else if (i.opcode == op_load && variable(3) != 0) {
      const std::uint32_t type = pair_type(variable(3));
      const std::uint32_t loaded = added_.next_id();
      append(body_, op_load, {type, loaded, i.operand(3)});
      append(body_, op_bitcast, {i.operand(1), i.operand(2), loaded});
    } else if (i.opcode == op_store && variable(1) != 0) {
      const std::uint32_t stored = joined(i.operand(2), pairs_of(variable(1)));
      append(body_, op_store, {i.operand(1), stored});
    } else {
      copy(i);
    }
  }

  /// The pairs of a vector of words. Not by a bit cast: lavapipe's for 16 numbers of 64 bits at once overruns its
  /// stack.
  std::uint32_t joined(std::uint32_t vector, std::uint32_t count) {
    const std::uint32_t word = added_.type({op_type_int, word_bits, 0});
    const std::uint32_t pair = added_.type({op_type_int, 2 * word_bits, 0});
    const std::uint32_t shift = added_.constant(word, word_bits);
    const std::uint32_t words = put(op_bitcast, added_.type({op_type_vector, word, 2 * count}), {vector});
    std::vector<std::uint32_t> pairs;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t low = put(op_u_convert, pair, {put(op_composite_extract, word, {words, 2 * i})});
      const std::uint32_t high = put(op_u_convert, pair, {put(op_composite_extract, word, {words, 2 * i + 1})});
      pairs.push_back(put(op_bitwise_xor, pair, {low, put(op_shift_left, pair, {high, shift})}));
    }
    return count == 1 ? pairs[0] : put(op_composite_construct, added_.type({op_type_vector, pair, count}), pairs);
  }

  /// Appends an instruction with a result, and returns that.
  std::uint32_t put(std::uint32_t opcode, std::uint32_t type, const std::vector<std::uint32_t>& operands) {
    std::vector<std::uint32_t> all{type, added_.next_id()};
    all.insert(all.end(), operands.begin(), operands.end());
    append(body_, opcode, all);
    return all[1];
  }

  /// The type of an element of a variable as pairs.
  std::uint32_t pair_type(std::uint32_t variable) {
    const std::uint32_t pair = added_.type({op_type_int, 2 * word_bits, 0});
    const std::uint32_t count = pairs_of(variable);
    return count == 1 ? pair : added_.type({op_type_vector, pair, count});
  }

  /// The same buffer with elements of that type.
  std::uint32_t as_pairs(std::uint32_t variable) {
    const auto [found, fresh] = copies_.try_emplace(variable, 0);
    if (fresh) {
      const std::uint32_t block = added_.array_block(pair_type(variable), 8 * pairs_of(variable));
      found->second = added_.variable_of(variable, added_.type({op_type_pointer, storage_buffer, block}));
    }
    return found->second;
  }

  void copy(const Instruction& i) { body_.insert(body_.end(), i.words.begin(), i.words.end()); }

  Additions added_;
  std::set<std::uint32_t> coherent_;                  ///< blocks
  std::map<std::uint32_t, std::uint32_t> variables_;  ///< of pointers to elements that are loaded or stored whole
  std::set<std::uint32_t> otherwise_used_;
  std::map<std::uint32_t, std::uint32_t> copies_;  ///< of variables
  bool in_capabilities_ = true;
  bool has_int64_ = false;
  bool in_functions_ = false;
  std::vector<std::uint32_t> body_;
};

}  // namespace

std::vector<std::uint32_t> with_pair_access(std::span<const std::uint32_t> words) {
  return Rewriter(words).finish();
}

}  // namespace halfstep::vk
