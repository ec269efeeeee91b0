#include "selftest/patches.h"

#include <array>
#include <map>
#include <set>
#include <utility>

#include "harness/loop_limit.h"
#include "selftest/rewriter.h"

namespace halfstep::selftest {

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

Patch scan_kind(std::uint32_t from, std::uint32_t to) {
  return rewriting([=](Rewriter& out, const Instruction& i) {
    if (i.opcode != op::group_i_add || i.operand(4) != from) return out.keep(i);
    std::vector<std::uint32_t> operands = operands_of(i);
    operands[3] = to;
    out.write(i.opcode, operands);
  });
}

Patch sums_contracted() {
  return [](const Words& words) {
    std::map<std::uint32_t, std::array<std::uint32_t, 2>> products;
    vk::for_each_instruction(words, [&](const Instruction& i) {
      if (i.opcode == op::f_mul) products[i.operand(2)] = {i.operand(3), i.operand(4)};
    });
    constexpr std::uint32_t bits_of_4097 = 0x45800800U;  // 2^12 + 1, by which a number is cut into two of half its bits
    return with_constant(bits_of_4097, [&](Rewriter& out, const Instruction& i, std::uint32_t constant) {
      const auto product = i.opcode == op::f_add ? products.find(i.operand(3)) : products.end();
      if (product == products.end()) return out.keep(i);
      const std::uint32_t type = i.operand(1);
      const auto with = [&](std::uint32_t opcode, std::uint32_t left, std::uint32_t right) {
        const std::uint32_t result = out.fresh();
        out.write(opcode, {type, result, left, right});
        return result;
      };
      const std::uint32_t cut = out.fresh();
      out.write(op::bitcast, {type, cut, constant});
      const auto halves = [&](std::uint32_t number) {
        const std::uint32_t large = with(op::f_mul, number, cut);
        const std::uint32_t high = with(op::f_sub, large, with(op::f_sub, large, number));
        return std::array{high, with(op::f_sub, number, high)};
      };
      const auto [a, a_low] = halves(product->second[0]);
      const auto [b, b_low] = halves(product->second[1]);
      // What rounding took from the product, which counts once more.
      std::uint32_t lost = with(op::f_sub, with(op::f_mul, a, b), product->first);
      lost = with(op::f_add, lost, with(op::f_mul, a, b_low));
      lost = with(op::f_add, lost, with(op::f_mul, a_low, b));
      lost = with(op::f_add, lost, with(op::f_mul, a_low, b_low));
      const std::uint32_t sum = with(op::f_add, i.operand(3), i.operand(4));
      out.write(op::f_add, {type, i.operand(2), sum, lost});
    })(words);
  };
}

Patch pairs_swapped() {
  return rewriting([](Rewriter& out, const Instruction& i) {
    if (i.opcode != op::composite_construct || i.words.size() != 5) return out.keep(i);
    out.write(op::composite_construct, {i.operand(1), i.operand(2), i.operand(4), i.operand(3)});
  });
}

Patch builtin_doubled(std::uint32_t builtin) {
  return [=](const Words& words) {
    constexpr std::uint32_t decoration_builtin = 11;
    std::set<std::uint32_t> variables;
    vk::for_each_instruction(words, [&](const Instruction& i) {
      if (i.opcode == op::decorate && i.operand(2) == decoration_builtin && i.operand(3) == builtin)
        variables.insert(i.operand(1));
    });
    return rewriting([&](Rewriter& out, const Instruction& i) {
      if (i.opcode != op::load || !variables.contains(i.operand(3))) return out.keep(i);
      const std::uint32_t read = out.fresh();
      out.write(op::load, {i.operand(1), read, i.operand(3)});
      out.write(op::i_add, {i.operand(1), i.operand(2), read, read});
    })(words);
  };
}

Patch constants_fixed(const std::map<std::uint32_t, std::uint32_t>& values) {
  return [=](const Words& words) {
    constexpr std::uint32_t spec_id = 1;
    std::map<std::uint32_t, std::uint32_t> fixed;  // by what has the constant
    return rewriting([&](Rewriter& out, const Instruction& i) {
      if (i.opcode == op::decorate && i.operand(2) == spec_id && values.contains(i.operand(3))) {
        fixed[i.operand(1)] = values.at(i.operand(3));
        return;
      }
      const bool is_bool = i.opcode == op::spec_constant_true || i.opcode == op::spec_constant_false;
      const auto found = is_bool || i.opcode == op::spec_constant ? fixed.find(i.operand(2)) : fixed.end();
      if (found == fixed.end()) return out.keep(i);
      if (!is_bool) return out.write(i.opcode, {i.operand(1), i.operand(2), found->second});
      out.write(found->second != 0 ? op::spec_constant_true : op::spec_constant_false, {i.operand(1), i.operand(2)});
    })(words);
  };
}

}  // namespace halfstep::selftest
