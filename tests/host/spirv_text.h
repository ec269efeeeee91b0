#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// SPIR-V of a text, an instruction a line, as vk/shader/opcodes.def names them: `%sum = i_add %int %a %b`. Ids are
/// %names, the type first; numbers are decimal; texts are "quoted". Fails the test where that is not understood.
std::vector<std::uint32_t> assembled(std::string_view text);

/// A shader with the entry point %main, of `declarations` (decorations first) and `functions`. It has the types %void,
/// %bool, %int (signed), %uint, %float, %v4 (of floats), %in_int and %in_v4 (pointers in functions), %fn (of main), the
/// constants %i0 to %i4, %true and %false, and %out, a buffer of integers: %at (a pointer type), %out.
std::string shader_of(std::string_view decorations, std::string_view declarations, std::string_view functions);

/// The number of instructions of this name in the words.
std::size_t count_of(const std::vector<std::uint32_t>& words, std::string_view name);
