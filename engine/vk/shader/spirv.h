#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "vk/shader/opcodes.h"

namespace halfstep::vk {

/// A SPIR-V instruction: the first word holds its length and opcode, the rest its operands.
struct Instruction {
  std::uint32_t opcode;
  std::span<const std::uint32_t> words;  ///< including the first word

  /// Operand `i`, from 1; 0 if there are fewer.
  std::uint32_t operand(std::size_t i) const { return i < words.size() ? words[i] : 0; }
};

/// Words before the first instruction.
constexpr std::size_t spirv_header_words = 5;
inline constexpr std::size_t bound_word = 3;  ///< of the header: one more than the largest id

/// The descriptor set of shaders/common/storing.glsl, and the first of its specialization constants.
inline constexpr std::uint32_t storing_set = 1;
inline constexpr std::uint32_t first_storing_constant = 100;

/// The first word of the name of GLSL.std.450, the set of extended instructions that GLSL's functions are.
constexpr std::uint32_t glsl_begins = 0x4c534c47;
/// unpackHalf2x16() in it.
constexpr std::uint32_t glsl_unpack_half_2x16 = 62;

/// Calls `visit` with each instruction in order. Throws Error if the words are not SPIR-V.
void for_each_instruction(std::span<const std::uint32_t> words, const std::function<void(const Instruction&)>& visit);

/// Adds an instruction at the end.
void append(std::vector<std::uint32_t>& words, std::uint32_t opcode, std::span<const std::uint32_t> operands);
void append(std::vector<std::uint32_t>& words, std::uint32_t opcode, std::initializer_list<std::uint32_t> operands);
void append_extension(std::vector<std::uint32_t>& words, std::string_view name);

/// What the engine needs to know about a shader.
struct ShaderFacts {
  bool has_float16 = false;  ///< the 16-bit float type
  bool has_float32 = false;
  bool unpacks_halves = false;    ///< converts f16 from words, for which it needs no 16-bit type
  bool needs_float16 = false;     ///< declares capability Float16: used for more than loads, stores and conversions
  bool uses_subgroups = false;    ///< any operation across the invocations of a subgroup
  std::uint32_t entry_point = 0;  ///< id of the entry point
  std::uint32_t bindings = 0;     ///< the highest binding that it uses in set 0, plus one
  bool has_storing_set = false;   ///< has set 1: see shaders/common/storing.glsl
  std::array<std::uint32_t, 3> local_size{1, 1, 1};  ///< with the given specialization constants
};

/// The shader with all bindings of set 0 from `count` on mapped to binding `count` - 1. They belong to arguments that a
/// dispatch does not use, but for which a pipeline would still require a buffer.
std::vector<std::uint32_t> with_bindings(std::span<const std::uint32_t> words, std::uint32_t count);

ShaderFacts shader_facts(std::span<const std::uint32_t> words, std::span<const std::uint32_t> constants);

}  // namespace halfstep::vk
