#include "selftest/patches.h"

#include <map>
#include <set>
#include <utility>

#include "harness/loop_limit.h"
#include "vk/shader/spirv.h"

namespace halfstep::selftest {
namespace {

using Words = std::vector<std::uint32_t>;
using vk::Instruction;

/// A module that is written instruction by instruction.
class Rewriter {
 public:
  explicit Rewriter(const Words& words) : source_(words), next_(words[3]) {
    result_.assign(words.begin(), words.begin() + vk::spirv_header_words);
    vk::for_each_instruction(words, [&](const Instruction& i) {
      if (i.opcode == op::type_int && i.operand(2) == 32 && i.operand(3) == 0) uint_type = i.operand(1);
      if (i.opcode == op::store) stores.insert(i.operand(2));
    });
  }

  /// `visit` writes what stands for an instruction.
  Words rewrite(const std::function<void(Rewriter&, const Instruction&)>& visit) {
    vk::for_each_instruction(source_, [&](const Instruction& i) { visit(*this, i); });
    result_[3] = next_;
    return std::move(result_);
  }

  void keep(const Instruction& i) { result_.insert(result_.end(), i.words.begin(), i.words.end()); }
  void write(std::uint32_t opcode, const std::vector<std::uint32_t>& operands) {
    result_.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16U | opcode);
    result_.insert(result_.end(), operands.begin(), operands.end());
  }
  std::uint32_t fresh() { return next_++; }
  /// A constant, which is to be declared before the first function.
  std::uint32_t declare(std::uint32_t value) {
    const std::uint32_t id = fresh();
    write(op::constant, {uint_type, id, value});
    return id;
  }

  std::uint32_t uint_type = 0;
  std::set<std::uint32_t> stores;  ///< what is stored

 private:
  const Words& source_;
  std::uint32_t next_;
  Words result_;
};

std::vector<std::uint32_t> operands_of(const Instruction& i) {
  return {i.words.begin() + 1, i.words.end()};
}

Patch rewriting(std::function<void(Rewriter&, const Instruction&)> visit) {
  return [visit = std::move(visit)](const Words& words) { return Rewriter(words).rewrite(visit); };
}

/// The same with a constant declared before the first function.
Patch with_constant(std::uint32_t value,
                    const std::function<void(Rewriter&, const Instruction&, std::uint32_t constant)>& visit) {
  return [=](const Words& words) {
    std::uint32_t constant = 0;
    Rewriter rewriter(words);
    if (rewriter.uint_type == 0) return words;
    return rewriter.rewrite([&](Rewriter& out, const Instruction& i) {
      if (i.opcode == op::function && constant == 0) constant = out.declare(value);
      visit(out, i, constant);
    });
  };
}

/// The types of a module's results, and the pointers of storage buffers.
struct Types {
  std::map<std::uint32_t, std::uint32_t> of;  ///< of a result
  std::set<std::uint32_t> buffers;            ///< pointers into them
  std::set<std::uint32_t> stored;             ///< pointers that are stored through

  explicit Types(const Words& words) {
    constexpr std::uint32_t uniform = 2;
    constexpr std::uint32_t storage_buffer = 12;
    std::set<std::uint32_t> variables;
    vk::for_each_instruction(words, [&](const Instruction& i) {
      if (i.opcode >= op::variable && i.words.size() > 2) of[i.operand(2)] = i.operand(1);
      if (i.opcode == op::variable && (i.operand(3) == uniform || i.operand(3) == storage_buffer))
        variables.insert(i.operand(2));
      if (is_chain(i) && variables.contains(i.operand(3))) buffers.insert(i.operand(2));
      if (i.opcode == op::store) stored.insert(i.operand(1));
    });
  }
  static bool is_chain(const Instruction& i) {
    return i.opcode == op::access_chain || i.opcode == op::in_bounds_access_chain;
  }
};

}  // namespace

Patch swapped(std::uint32_t from, std::uint32_t to) {
  return rewriting(
      [=](Rewriter& out, const Instruction& i) { i.opcode == from ? out.write(to, operands_of(i)) : out.keep(i); });
}

Patch other_function(std::uint32_t from, std::uint32_t to) {
  return rewriting([=](Rewriter& out, const Instruction& i) {
    if (i.opcode != op::ext_inst || i.operand(4) != from) return out.keep(i);
    std::vector<std::uint32_t> operands = operands_of(i);
    operands[3] = to;
    out.write(op::ext_inst, operands);
  });
}

Patch removed_unary(std::uint32_t op) {
  return rewriting([=](Rewriter& out, const Instruction& i) {
    i.opcode == op ? out.write(op::copy_object, operands_of(i)) : out.keep(i);
  });
}

Patch stores_masked(std::uint32_t mask) {
  return with_constant(mask, [](Rewriter& out, const Instruction& i, std::uint32_t constant) {
    if (i.opcode != op::store) return out.keep(i);
    const std::uint32_t masked = out.fresh();
    out.write(op::bit_and, {out.uint_type, masked, i.operand(2), constant});
    out.write(op::store, {i.operand(1), masked});
  });
}

Patch index_offset(std::uint32_t offset) {
  return [=](const Words& words) {
    const Types types(words);
    return with_constant(offset, [&](Rewriter& out, const Instruction& i, std::uint32_t constant) {
      const bool stored =
          Types::is_chain(i) && types.buffers.contains(i.operand(2)) && types.stored.contains(i.operand(2));
      if (!stored || i.words.size() < 6) return out.keep(i);
      std::vector<std::uint32_t> operands = operands_of(i);
      const std::uint32_t moved = out.fresh();
      const auto type = types.of.find(operands[4]);
      out.write(op::i_add, {type == types.of.end() ? out.uint_type : type->second, moved, operands[4], constant});
      operands[4] = moved;
      out.write(i.opcode, operands);
    })(words);
  };
}

Patch without_stores() {
  return [](const Words& words) {
    const Types types(words);
    return rewriting([&](Rewriter& out, const Instruction& i) {
      if (i.opcode != op::store || !types.buffers.contains(i.operand(1))) out.keep(i);
    })(words);
  };
}

Patch without_stores_by_address() {
  return [](const Words& words) {
    constexpr std::uint32_t physical_storage_buffer = 5349;
    std::set<std::uint32_t> types;
    std::set<std::uint32_t> pointers;
    vk::for_each_instruction(words, [&](const Instruction& i) {
      if (i.opcode == op::type_pointer && i.operand(2) == physical_storage_buffer) types.insert(i.operand(1));
      if (Types::is_chain(i) && types.contains(i.operand(1))) pointers.insert(i.operand(2));
    });
    return rewriting([&](Rewriter& out, const Instruction& i) {
      if (i.opcode != op::store || !pointers.contains(i.operand(1))) out.keep(i);
    })(words);
  };
}

Patch without_barriers() {
  return rewriting([](Rewriter& out, const Instruction& i) {
    if (i.opcode != op::control_barrier && i.opcode != op::memory_barrier) out.keep(i);
  });
}

Patch fma_without_sum() {
  return rewriting([](Rewriter& out, const Instruction& i) {
    if (i.opcode != op::ext_inst || i.operand(4) != ext::fma) return out.keep(i);
    out.write(op::f_mul, {i.operand(1), i.operand(2), i.operand(5), i.operand(6)});
  });
}

Patch denormal_halves_flushed() {
  return [](const Words& words) {
    std::map<std::uint32_t, std::uint32_t> constants;
    return rewriting([&](Rewriter& out, const Instruction& i) {
      if (out.uint_type == 0) return out.keep(i);
      if (i.opcode == op::function && constants.empty())
        for (const std::uint32_t value : {0x7C007C00U, 1U, 2U, 10U, 0x00010001U, 0xFFFFU})
          constants[value] = out.declare(value);
      if (i.opcode != op::ext_inst || i.operand(4) != ext::unpack_half_2x16) return out.keep(i);
      const auto with = [&](std::uint32_t opcode, std::uint32_t left, std::uint32_t right) {
        const std::uint32_t result = out.fresh();
        out.write(opcode, {out.uint_type, result, left, right});
        return result;
      };
      // The five bits of each exponent, all of them in its lowest bit, and that in all bits of its half.
      std::uint32_t any = with(op::bit_and, i.operand(5), constants[0x7C007C00U]);
      for (const std::uint32_t shift : {1U, 2U, 1U})
        any = with(op::bit_or, any, with(op::shift_right_logical, any, constants[shift]));
      any = with(op::bit_and, with(op::shift_right_logical, any, constants[10]), constants[0x00010001U]);
      const std::uint32_t kept = with(op::bit_and, i.operand(5), with(op::i_mul, any, constants[0xFFFFU]));
      out.write(op::ext_inst, {i.operand(1), i.operand(2), i.operand(3), i.operand(4), kept});
    })(words);
  };
}

Patch tanh_by_exponentials() {
  return rewriting([](Rewriter& out, const Instruction& i) {
    if (i.opcode != op::ext_inst || i.operand(4) != ext::tanh) return out.keep(i);
    const std::uint32_t sinh = out.fresh();
    const std::uint32_t cosh = out.fresh();
    out.write(op::ext_inst, {i.operand(1), sinh, i.operand(3), ext::sinh, i.operand(5)});
    out.write(op::ext_inst, {i.operand(1), cosh, i.operand(3), ext::cosh, i.operand(5)});
    out.write(op::f_div, {i.operand(1), i.operand(2), sinh, cosh});
  });
}

Patch other_constant(std::uint32_t from, std::uint32_t to) {
  return rewriting([=](Rewriter& out, const Instruction& i) {
    if (i.opcode != op::constant || i.words.size() != 4 || i.operand(3) != from) return out.keep(i);
    out.write(op::constant, {i.operand(1), i.operand(2), to});
  });
}

Patch loops_cut(std::uint32_t rounds) {
  return [=](const Words& words) { return testing::with_loop_limit(words, rounds); };
}

Patch push_shifted(std::uint32_t bytes) {
  return [=](const Words& words) {
    // The pointers of push constants are of structs of one member.
    constexpr std::uint32_t push_constant = 9;
    constexpr std::uint32_t offset = 35;
    std::set<std::uint32_t> pushed;
    vk::for_each_instruction(words, [&](const Instruction& i) {
      if (i.opcode == op::type_pointer && i.operand(2) == push_constant) pushed.insert(i.operand(3));
    });
    return rewriting([&](Rewriter& out, const Instruction& i) {
      if (i.opcode != op::member_decorate || i.operand(3) != offset || !pushed.contains(i.operand(1)))
        return out.keep(i);
      out.write(op::member_decorate, {i.operand(1), i.operand(2), offset, i.operand(4) + bytes});
    })(words);
  };
}

Patch without_specialization() {
  constexpr std::uint32_t spec_id = 1;
  return rewriting([=](Rewriter& out, const Instruction& i) {
    // But for the size of workgroups, constant 0.
    const bool named = i.opcode == op::decorate && i.operand(2) == spec_id && i.operand(3) != 0;
    if (!named) out.keep(i);
  });
}

Patch atomics_as_stores() {
  return rewriting([](Rewriter& out, const Instruction& i) {
    if (i.opcode != op::atomic_i_add) return out.keep(i);
    const std::uint32_t sum = out.fresh();
    out.write(op::load, {i.operand(1), i.operand(2), i.operand(3)});
    out.write(op::i_add, {i.operand(1), sum, i.operand(2), i.operand(6)});
    out.write(op::store, {i.operand(3), sum});
  });
}

Patch data_stored_late() {
  return [](const Words& words) {
    bool first = true;
    return rewriting([&](Rewriter& out, const Instruction& i) {
      if (i.opcode == op::atomic_exchange && std::exchange(first, false)) return;
      out.keep(i);
    })(words);
  };
}

Patch component_zero(std::uint32_t component) {
  return rewriting([=](Rewriter& out, const Instruction& i) {
    if (i.opcode != op::composite_extract || i.words.size() != 5 || i.operand(4) != component) return out.keep(i);
    out.write(op::composite_extract, {i.operand(1), i.operand(2), i.operand(3), 0});
  });
}

Patch wide_products_masked(std::uint32_t mask) {
  return [=](const Words& words) {
    std::uint32_t wide = 0;
    vk::for_each_instruction(words, [&](const Instruction& i) {
      if (i.opcode == op::type_int && i.operand(2) == 64) wide = i.operand(1);
    });
    std::uint32_t constant = 0;
    return rewriting([&](Rewriter& out, const Instruction& i) {
      if (i.opcode == op::function && constant == 0) {
        constant = out.fresh();
        out.write(op::constant, {wide, constant, mask, 0});
      }
      if (i.opcode != op::i_mul || i.operand(1) != wide) return out.keep(i);
      const std::uint32_t whole = out.fresh();
      out.write(op::i_mul, {wide, whole, i.operand(3), i.operand(4)});
      out.write(op::bit_and, {wide, i.operand(2), whole, constant});
    })(words);
  };
}

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

Patch scan_kind(std::uint32_t from, std::uint32_t to) {
  return rewriting([=](Rewriter& out, const Instruction& i) {
    if (i.opcode != op::group_i_add || i.operand(4) != from) return out.keep(i);
    std::vector<std::uint32_t> operands = operands_of(i);
    operands[3] = to;
    out.write(i.opcode, operands);
  });
}

}  // namespace halfstep::selftest
