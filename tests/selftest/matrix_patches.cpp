// Changes of kernels for matrix units.
#include "selftest/patches.h"
#include "selftest/rewriter.h"

namespace halfstep::selftest {
namespace {

/// The operands of the loads of fragments, in order.
std::vector<std::vector<std::uint32_t>> fragments_of(const Words& words, std::uint32_t opcode) {
  std::vector<std::vector<std::uint32_t>> found;
  vk::for_each_instruction(words, [&](const Instruction& i) {
    if (i.opcode == opcode) found.push_back(operands_of(i));
  });
  return found;
}

/// The last index of the pointer is larger.
Patch pointer_moved(std::uint32_t pointer, std::uint32_t elements) {
  return with_constant(elements, [=](Rewriter& out, const Instruction& i, std::uint32_t constant) {
    if (!Types::is_chain(i) || i.operand(2) != pointer) return out.keep(i);
    std::vector<std::uint32_t> operands = operands_of(i);
    const std::uint32_t moved = out.fresh();
    out.write(op::i_add, {out.uint_type, moved, operands.back(), constant});
    operands.back() = moved;
    out.write(i.opcode, operands);
  });
}

/// Operand `operand` of the `nth` load of a fragment is another.
Patch load_changed(std::size_t nth, std::size_t operand, std::function<std::uint32_t(std::uint32_t constant)> other) {
  return [=](const Words& words) {
    std::size_t next = 0;
    return with_constant(1, [&](Rewriter& out, const Instruction& i, std::uint32_t constant) {
      if (i.opcode != op::cooperative_matrix_load || next++ != nth) return out.keep(i);
      std::vector<std::uint32_t> operands = operands_of(i);
      operands[operand] = other(constant);
      out.write(i.opcode, operands);
    })(words);
  };
}

}  // namespace

Patch fragment_moved(std::size_t nth, std::uint32_t elements) {
  return [=](const Words& words) {
    const auto loads = fragments_of(words, op::cooperative_matrix_load);
    return nth < loads.size() ? pointer_moved(loads[nth][2], elements)(words) : words;
  };
}

Patch stored_fragment_moved(std::uint32_t elements) {
  return [=](const Words& words) {
    const auto stores = fragments_of(words, op::cooperative_matrix_store);
    return stores.empty() ? words : pointer_moved(stores[0][0], elements)(words);
  };
}

Patch fragment_by_columns(std::size_t nth) {
  return load_changed(nth, 3, [](std::uint32_t constant) { return constant; });
}

Patch fragment_stride(std::size_t nth) {
  return [=](const Words& words) {
    const auto loads = fragments_of(words, op::cooperative_matrix_load);
    return loads.empty() ? words : load_changed(nth, 4, [&](std::uint32_t) { return loads[0][4]; })(words);
  };
}

Patch matrix_sums_lost() {
  return [](const Words& words) {
    const auto products = fragments_of(words, op::cooperative_matrix_mul_add);
    return rewriting([&](Rewriter& out, const Instruction& i) {
      if (i.opcode != op::cooperative_matrix_mul_add) return out.keep(i);
      std::vector<std::uint32_t> operands = operands_of(i);
      operands[4] = products[0][4];
      out.write(i.opcode, operands);
    })(words);
  };
}

Patch matrix_signs_lost() {
  return rewriting([](Rewriter& out, const Instruction& i) {
    if (i.opcode != op::cooperative_matrix_mul_add) return out.keep(i);
    std::vector<std::uint32_t> operands = operands_of(i);
    operands[5] = 0;
    out.write(i.opcode, operands);
  });
}

}  // namespace halfstep::selftest
