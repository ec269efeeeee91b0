#include <halfstep/error.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "spirv_text.h"
#include "vk/shader/exact_arithmetic.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"
#include "vk/shader/validate_spirv.h"

namespace halfstep {
namespace {

/// Whether reproducible() targets use the variant: no 16-bit elements, no subgroups, no matrix units.
bool is_used(std::string_view name) {
  return std::ranges::none_of(
      std::vector<std::string_view>{".f16", "lanes", "thin", "cooperative", "gemm_half", "gemm_dots"},
      [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

/// A shader with `code` in a function that is given pointers to the same numbers: %from in a buffer, %to within it, and
/// %anywhere to an array in a buffer whose length is a specialization constant; %push are push constants.
std::string shader_with_numbers(std::string_view code) {
  constexpr const char* variable_pointers = "capability 4441\n";
  return variable_pointers + shader_of(R"(decorate %pair 6 4
member_decorate %inner 0 35 0
member_decorate %inner 1 35 4
member_decorate %numbers 0 35 0
member_decorate %numbers 1 35 4
member_decorate %numbers 2 35 16
member_decorate %numbers 2 5
member_decorate %numbers 2 7 8
member_decorate %numbers 3 35 32
decorate %numbers 2
decorate %buffer 34 0
decorate %buffer 33 1
decorate %any 6 4
decorate %in_block 2
member_decorate %in_block 0 35 0
decorate %sized 34 0
decorate %sized 33 2
member_decorate %whole_push 0 35 0
decorate %whole_push 2)",
                                       R"(%v2 = type_vector %float 2
%matrix = type_matrix %v2 2
%pair = type_array %float %i2
%inner = type_struct %uint %pair
%numbers = type_struct %float %inner %matrix %v4
%length = spec_constant %int 2
%any = type_array %float %length
%in_block = type_struct %any
%whole_push = type_struct %float
%to_numbers = type_pointer 12 %numbers
%own_numbers = type_pointer 7 %numbers
%to_in_block = type_pointer 12 %in_block
%to_any = type_pointer 12 %any
%to_push = type_pointer 9 %whole_push
%buffer = variable %to_numbers 12
%sized = variable %to_in_block 12
%push = variable %to_push 9
%taking = type_function %void %to_numbers)",
                                       fmt::format(R"(%f = function %void 0 %taking
%from = function_parameter %to_numbers
%fb = label
%to = variable %own_numbers 7
%anywhere = access_chain %to_any %sized %i0
{}return
function_end
%main = function %void 0 %fn
%mb = label
%called = function_call %void %f %buffer
return
function_end)",
                                                   code));
}

}  // namespace

TEST_CASE(
    "every kernel has a reproducible form, which is valid and has no instruction that drivers round their own way") {
  std::size_t checked = 0;
  for (const std::string_view name : vk::shader_names()) {
    if (!is_used(name)) continue;
    CAPTURE(name);
    const std::vector<std::uint32_t> words = vk::with_exact_arithmetic(vk::find_shader(name).words, name);
    vk::check_spirv(words, name);
    // OpFDiv, OpFMod, OpDot; and of GLSL.std.450 exp, log, sqrt, inversesqrt, min, max, clamp, mix, fma,
    // packHalf2x16, unpackHalf2x16.
    const std::set<std::uint32_t> opcodes{136, 141, 148};
    const std::set<std::uint32_t> of_glsl{27, 28, 31, 32, 37, 40, 43, 46, 50, 58, 62};
    vk::for_each_instruction(words, [&](const vk::Instruction& i) {
      CHECK_FALSE(opcodes.contains(i.opcode));
      if (i.opcode == 12) CHECK_FALSE(of_glsl.contains(i.operand(4)));
    });
    ++checked;
  }
  CHECK(checked > 200);
}

TEST_CASE("every kernel has a form that unpacks f16 by integers, and is else as it was") {
  std::size_t changed = 0;
  for (const std::string_view name : vk::shader_names()) {
    CAPTURE(name);
    const std::span<const std::uint32_t> before = vk::find_shader(name).words;
    const std::vector<std::uint32_t> after = vk::with_exact_unpacking(before);
    const vk::ShaderFacts facts = vk::shader_facts(before, {});
    CHECK(std::ranges::equal(before, after) == !facts.unpacks_halves);
    if (!facts.unpacks_halves) continue;
    const bool matrices = name.find("cooperative") != std::string_view::npos;  // which the validator may not know
    if (!matrices) vk::check_spirv(after, name);
    CHECK_FALSE(vk::shader_facts(after, {}).unpacks_halves);
    ++changed;
  }
  CHECK(changed > 100);
}

TEST_CASE("every number of f32 in what a kernel loads as a whole is made 0 where it is subnormal") {
  // {float, {uint, float[2]}, mat2, vec4}.
  const std::vector<std::uint32_t> words = vk::with_exact_arithmetic(
      assembled(shader_with_numbers("%n = load %numbers %from\n%p = load %whole_push %push\n")), "numbers");
  vk::check_spirv(words, "numbers");
  const std::vector<std::vector<std::uint32_t>> places{{0}, {1, 1, 0}, {1, 1, 1}, {2, 0}, {2, 1}, {3}};
  std::map<std::uint32_t, std::uint32_t> called;                  // the argument, by the result
  std::map<std::uint32_t, std::vector<std::uint32_t>> extracted;  // where it was, by the result
  std::vector<std::vector<std::uint32_t>> inserted;
  vk::for_each_instruction(words, [&](const vk::Instruction& i) {
    if (i.opcode == vk::op_function_call && i.words.size() == 5) called[i.operand(2)] = i.operand(4);
    if (i.opcode == vk::op_composite_extract) extracted[i.operand(2)] = {i.words.begin() + 4, i.words.end()};
    if (i.opcode != vk::op_composite_insert) return;
    inserted.emplace_back(i.words.begin() + 5, i.words.end());
    CHECK(extracted.at(called.at(i.operand(3))) == inserted.back());
  });
  std::vector<std::vector<std::uint32_t>> wanted = places;
  wanted.push_back({0});  // of the push constants, which have one number
  CHECK(inserted == wanted);
}

TEST_CASE("subnormal constants of f32 are 0 in a reproducible kernel, and no others are") {
  const std::map<std::uint32_t, std::uint32_t> wanted{{1, 0},
                                                      {0x80000001, 0x80000000},
                                                      {0x00800000, 0},
                                                      {0x00800001, 0x00800001},
                                                      {0x3f800000, 0x3f800000},
                                                      {0x80900000, 0x80900000}};
  for (const auto& [bits, result] : wanted) {
    CAPTURE(bits);
    for (const char* kind : {"constant", "spec_constant"}) {
      const std::string declared = fmt::format("%c = {} %float {}\n%whole = constant %uint {}\n", kind, bits, bits);
      const std::vector<std::uint32_t> words = vk::with_exact_arithmetic(
          assembled(shader_of("", declared, "%main = function %void 0 %fn\n%b = label\nreturn\nfunction_end")), kind);
      std::uint32_t of_floats = 0;
      std::vector<std::uint32_t> floats;
      std::vector<std::uint32_t> others;
      vk::for_each_instruction(words, [&](const vk::Instruction& i) {
        if (i.opcode == vk::op_type_float) of_floats = i.operand(1);
        if (i.opcode != vk::op_constant && i.opcode != vk::op_spec_constant) return;
        (i.operand(1) == of_floats ? floats : others).push_back(i.operand(3));
      });
      CHECK(floats == std::vector{result});
      CHECK(others.back() == bits);
    }
  }
}

TEST_CASE("sums and products with a constant 0 are not left to the driver") {
  const std::vector<std::uint32_t> words = vk::with_exact_arithmetic(
      assembled(shader_of("",
                          "%zero = constant %float 2147483648\n%small = constant %float 1\n%one = constant %float "
                          "1065353216\n%zeros = constant_composite %v4 %zero %small %zero %zero\n%mixed = "
                          "constant_composite %v4 %zero %one %zero %zero\n%null = constant_null %float\n",
                          "%main = function %void 0 %fn\n%b = label\n%s = f_add %float %one %zero\n"
                          "%p = f_mul %float %small %one\n%q = f_mul %float %null %one\n"
                          "%t = vector_times_scalar %v4 %mixed %zero\n%v = f_mul %v4 %mixed %zeros\nreturn\n"
                          "function_end")),
      "zeros");
  vk::check_spirv(words, "zeros");
  CHECK(count_of(words, "f_mul") + count_of(words, "f_add") + count_of(words, "vector_times_scalar") == 0);
}

TEST_CASE("specialization constants of f32 that are subnormal are 0 for a reproducible kernel") {
  const std::vector<std::uint32_t> words =
      assembled(shader_of("decorate %f 1 1\ndecorate %u 1 2\ndecorate %g 1 3\n",
                          "%f = spec_constant %float 5\n%u = spec_constant %uint 5\n%g = spec_constant %float 5\n"
                          "%h = spec_constant %float 5\n",
                          "%main = function %void 0 %fn\n%b = label\nreturn\nfunction_end"));
  const vk::Constants given{{0, 64}, {1, 0x80000007}, {2, 7}, {3, 0x3f800000}};
  const vk::Constants wanted{{0, 64}, {1, 0x80000000}, {2, 7}, {3, 0x3f800000}};
  CHECK(vk::with_exact_constants(words, given) == wanted);
  CHECK(vk::with_exact_constants(words, {{2, 7}}) == vk::Constants{{2, 7}});
}

TEST_CASE("what a reproducible kernel cannot load number by number is refused") {
  const auto refusal = [](const char* code) -> std::string {
    try {
      vk::with_exact_arithmetic(assembled(shader_with_numbers(code)), "numbers");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string begin =
      "[precision] expected kernels of sums and products of f32 for Precision::reproducible, got ";
  CHECK(refusal("copy_memory %to %from\n") == begin + "OpCopyMemory from a buffer in numbers");
  CHECK(refusal("copy_memory %to %to\n").empty());
  CHECK(refusal("%a = load %any %anywhere\n") ==
        begin + "the load of a whole array whose length is a specialization constant in numbers");
}

TEST_CASE("sums of f32 by atomic operations, in an order that nobody knows, are refused") {
  for (const std::uint32_t opcode : {5614U, 5615U, 6035U}) {  // OpAtomicFMinEXT, OpAtomicFMaxEXT, OpAtomicFAddEXT
    std::vector<std::uint32_t> words = assembled(shader_with_numbers(""));
    words.insert(words.end(), {7U << 16 | opcode, 1, 1, 1, 1, 1, 1});
    CHECK_THROWS_AS(vk::with_exact_arithmetic(words, "atomic"), Error);
  }
  CHECK_NOTHROW(vk::with_exact_arithmetic(assembled(shader_with_numbers("")), "atomic"));
}

TEST_CASE("a kernel without a reproducible form is refused by name") {
  const auto half =
      std::ranges::find_if(vk::shader_names(), [](std::string_view name) { return name.ends_with(".f16"); });
  REQUIRE(half != vk::shader_names().end());
  try {
    vk::with_exact_arithmetic(vk::find_shader(*half).words, *half);
    FAIL("expected an Error");
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(text.find("[precision] expected kernels of sums and products of f32 for Precision::reproducible, got floats "
                    "of 16 bits in " +
                    std::string(*half)) == 0);
  }
}

}  // namespace halfstep
