// Each pass of engine/vk/optimize/ on small shaders: what must go, and what must stay.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "spirv_run.h"
#include "spirv_text.h"
#include "vk/optimize/specialized.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"
#include "vk/shader/validate_spirv.h"

using namespace halfstep;

namespace {

using Words = std::vector<std::uint32_t>;

/// The shader of main() with this body, specialized; which is valid, and computes the same.
Words special(const std::string& body, const std::string& declarations = {}, const std::string& decorations = {},
              const vk::Constants& constants = {}, const std::string& functions = {}) {
  const std::string main = "%main = function %void 0 %fn\n%entry = label\n" + body + "function_end\n";
  const Words words = assembled(shader_of(decorations, declarations, main + functions));
  REQUIRE_NOTHROW(vk::check_spirv(words, "test"));
  Words result = vk::specialized(words, constants);
  CHECK(result != words);
  CHECK_NOTHROW(vk::check_spirv(result, "specialized"));
  CHECK(run_shader(words, constants) == run_shader(result, {}));
  return result;
}

/// What is stored at the first place of the buffer, `value` of `code`.
std::string stored(const std::string& code, const std::string& value) {
  return fmt::format("{}%to = access_chain %at %out %i0 %i0\nstore %to {}\nreturn\n", code, value);
}
std::string loaded(const std::string& name, int place) {
  return fmt::format("%{0}_at = access_chain %at %out %i0 %i{1}\n%{0} = load %int %{0}_at\n", name, place);
}

}  // namespace

TEST_CASE("specializer: constants are what they are given, and what follows from them is computed") {
  const std::string decorations = "decorate %n 1 7\ndecorate %b 1 8\n";
  const std::string declarations = R"(%n = spec_constant %int 5
%b = spec_constant_false %bool
%sum = spec_constant_op %int 128 %n %i3
%choice = spec_constant_op %int 169 %b %sum %i1
%array = type_array %int %sum
%to_array = type_pointer 7 %array
)";
  const std::string body = stored("%a = variable %to_array 7\n" + loaded("i", 1) +
                                      "%p = access_chain %in_int %a %i\nstore %p %choice\n%q = load %int %p\n",
                                  "%q");
  const Words given = special(body, declarations, decorations, {{7, 9}, {8, 1}});
  CHECK(count_of(given, "spec_constant") == 0);
  CHECK(count_of(given, "spec_constant_op") == 0);
  CHECK(count_of(given, "spec_constant_false") == 0);
  std::size_t twelve = 0;
  vk::for_each_instruction(
      given, [&](const vk::Instruction& i) { twelve += i.opcode == vk::op_constant && i.operand(3) == 12 ? 1U : 0U; });
  CHECK(twelve == 1);                        // the length and the value
  special(body, declarations, decorations);  // with the shader's own
}

TEST_CASE("specializer: integers are computed as devices do, and not where these may differ") {
  struct Case {
    const char* instruction;
    std::int64_t a;
    std::int64_t b;
    bool folds;
  };
  const Case cases[] = {
      {"i_add", 2147483647, 1, true}, {"i_sub", -2147483648, 1, true}, {"i_mul", 65536, 65537, true},
      {"s_div", -7, 2, true},         {"s_div", 7, 0, false},          {"s_div", -2147483648, -1, false},
      {"u_mod", -1, 10, true},        {"u_mod", 3, 0, false},          {"shift_left", 1, 31, true},
      {"shift_left", 1, 32, false},   {"bitwise_xor", -1, 5, true},    {"shift_right_logical", -1, 4, true}};
  for (const Case& c : cases) {
    CAPTURE(c.instruction);
    CAPTURE(c.b);
    const std::string declarations = fmt::format("%a = constant %int {}\n%b = constant %int {}\n", c.a, c.b);
    const std::string main =
        fmt::format("%main = function %void 0 %fn\n%e = label\n%r = {} %int %a %b\n", c.instruction) +
        stored("", "%r") + "function_end\n";
    const Words words = assembled(shader_of("", declarations, main));
    const Words result = vk::specialized(words, {});
    CHECK((count_of(result, c.instruction) == 0) == c.folds);
    if (c.folds) CHECK(run_shader(words, {}) == run_shader(result, {}));
  }
}

TEST_CASE("specializer: arithmetic on floats is left to the device, and what is decorated stays apart") {
  const std::string declarations =
      "%f1 = constant %float 1065353216\n%f2 = constant %float 1073741824\n%q = type_pointer 12 %float\n"
      "%floats = type_runtime_array %float\n%fblock = type_struct %floats\n%to_fblock = type_pointer 12 %fblock\n%fout "
      "= variable %to_fblock 12\n";
  const std::string main = R"(%main = function %void 0 %fn
%entry = label
%p = access_chain %q %fout %i0 %i1
%x = load %float %p
%s = f_add %float %f1 %f2
%y = f_mul %float %x %f2
%z = f_mul %float %x %f2
%w = f_mul %float %x %f2
%less = f_ord_less_than %bool %f1 %f2
%c = select %float %less %s %x
store %p %c
%p2 = access_chain %q %fout %i0 %i2
store %p2 %y
%p3 = access_chain %q %fout %i0 %i3
store %p3 %z
%p4 = access_chain %q %fout %i0 %i4
store %p4 %w
return
function_end
)";
  const Words words =
      assembled(shader_of("decorate %y 42\ndecorate %floats 6 4\nmember_decorate %fblock 0 35 0\ndecorate %fblock "
                          "2\ndecorate %fout 34 0\ndecorate %fout 33 1\n",
                          declarations, main));
  REQUIRE_NOTHROW(vk::check_spirv(words, "test"));
  const Words result = vk::specialized(words, {});
  CHECK_NOTHROW(vk::check_spirv(result, "specialized"));
  CHECK(count_of(result, "f_add") == 1);   // not computed here
  CHECK(count_of(result, "f_mul") == 2);   // z and w are one
  CHECK(count_of(result, "select") == 0);  // what compares numbers is known
}

TEST_CASE("specializer: numbers that some devices take for 0 are compared by the device") {
  for (const bool subnormal : {false, true}) {
    const std::string declarations =
        fmt::format("%f0 = constant %float 0\n%f = constant %float {}\n", subnormal ? 1 : 0x00800000);
    const std::string body = stored("%less = f_ord_less_than %bool %f0 %f\n%r = select %int %less %i1 %i2\n", "%r");
    const Words words = assembled(
        shader_of("", declarations, "%main = function %void 0 %fn\n%entry = label\n" + body + "function_end\n"));
    CHECK(count_of(vk::specialized(words, {}), "f_ord_less_than") == (subnormal ? 1 : 0));
  }
}

TEST_CASE("specializer: calls are inlined, with their early returns, but out of loops") {
  const std::string functions = R"(%f = function %int 0 %ff
%x = function_parameter %int
%fe = label
%small = s_less_than %bool %x %i2
selection_merge %fm 0
branch_conditional %small %ft %fm
%ft = label
return_value %i4
%fm = label
%twice = i_mul %int %x %i2
return_value %twice
function_end
)";
  const std::string body = stored(
      loaded("a", 1) + "%r = function_call %int %f %a\n%t = function_call %int %f %i3\n%u = i_add %int %r %t\n", "%u");
  const Words result = special(body, "%ff = type_function %int %int\n", "", {}, functions);
  CHECK(count_of(result, "function_call") == 0);
  CHECK(count_of(result, "function") == 1);
  CHECK(count_of(result, "variable") == 1);
  CHECK(count_of(result, "i_mul") == 1);  // of 3, it is known

  const std::string looping = R"(%f = function %int 0 %ff
%x = function_parameter %int
%fe = label
branch %fh
%fh = label
%i = phi %int %i0 %fe %next %fc
loop_merge %fm %fc 0
branch %fq
%fq = label
%more = s_less_than %bool %i %x
branch_conditional %more %ft %fm
%ft = label
%is = i_equal %bool %i %i3
selection_merge %fo 0
branch_conditional %is %fr %fo
%fr = label
return_value %i4
%fo = label
branch %fc
%fc = label
%next = i_add %int %i %i1
branch %fh
%fm = label
return_value %i0
function_end
)";
  CHECK(count_of(special(body, "%ff = type_function %int %int\n", "", {}, looping), "function_call") == 2);
}

TEST_CASE("specializer: variables become values, in loops too; not those that are indexed by what is not known") {
  const std::string declarations =
      "%u4 = constant %uint 4\n%four = type_array %int %u4\n%in_four = type_pointer 7 %four\n%own = type_pointer 6 "
      "%four\n%registers = variable %own 6\n";
  const std::string loop = R"(branch %h
%h = label
loop_merge %m %c 0
branch %q
%q = label
%i = load %int %n
%more = s_less_than %bool %i %i4
branch_conditional %more %t %m
%t = label
%r1 = access_chain %own_int %registers %i1
%old = load %int %r1
%new = i_add %int %old %i
store %r1 %new
branch %c
%c = label
%j = load %int %n
%k = i_add %int %j %i1
store %n %k
branch %h
%m = label
)";
  const std::string before =
      "%n = variable %in_int 7\n%r0 = access_chain %own_int %registers %i1\nstore %n %i0\nstore %r0 %i2\n";
  const std::string after = "%r3 = access_chain %own_int %registers %i1\n%v = load %int %r3\n";
  const Words result = special(stored(before + loop + after, "%v"), declarations + "%own_int = type_pointer 6 %int\n");
  CHECK(count_of(result, "variable") == 1);  // the buffer
  CHECK(count_of(result, "phi") == 2);
  CHECK(count_of(result, "store") == 1);

  const std::string indexed =
      "%a = variable %in_four 7\n" + loaded("x", 1) +
      "%low = bitwise_and %int %x %i3\n%p = access_chain %in_int %a %low\nstore %p %x\n%y = load %int %p\n";
  CHECK(count_of(special(stored(indexed, "%y"), declarations), "variable") == 2);
  for (const auto& [store, load] : {std::pair("1", ""), {"", "1"}}) {  // volatile
    const std::string observed =
        fmt::format("%a = variable %in_int 7\nstore %a %i3 {}\n%y = load %int %a {}\n", store, load);
    CHECK(count_of(special(stored(observed, "%y"), declarations), "variable") == 2);
  }
}

TEST_CASE("specializer: branches on constants go, with the blocks and bindings behind them") {
  const std::string declarations = "%s = spec_constant_true %bool\n%two = variable %to_block 12\n";
  const std::string decorations = "decorate %s 1 0\ndecorate %two 34 0\ndecorate %two 33 1\n";
  const std::string body = R"(selection_merge %m 0
branch_conditional %s %t %e
%t = label
%p = access_chain %at %out %i0 %i2
store %p %i1
branch %m
%e = label
%q = access_chain %at %two %i0 %i2
store %q %i1
branch %m
%m = label
%v = phi %int %i3 %t %i4 %e
)";
  const Words yes = special(stored(body, "%v"), declarations, decorations);
  CHECK(count_of(yes, "label") == 1);
  CHECK(count_of(yes, "selection_merge") == 0);
  CHECK(vk::shader_facts(yes, {}).bindings == 1);
  const Words no = vk::specialized(
      assembled(shader_of(decorations, declarations,
                          "%main = function %void 0 %fn\n%entry = label\n" + stored(body, "%v") + "function_end\n")),
      {{0, 0}});
  CHECK(vk::shader_facts(no, {}).bindings == 2);
}

TEST_CASE("specializer: a switch stays that is left from inside a selection only") {
  const std::string body = loaded("x", 1) + loaded("y", 2) + R"(%c = i_equal %bool %x %i1
%d = i_equal %bool %y %i1
selection_merge %after 0
branch_conditional %c %inside %after
%inside = label
selection_merge %done 0
switch %i0 %begin
%begin = label
selection_merge %never 0
branch_conditional %d %leave %end
%leave = label
branch %done
%end = label
return
%never = label
unreachable
%done = label
branch %after
%after = label
)";
  CHECK(count_of(special(stored(body, "%x")), "switch") == 1);
}

TEST_CASE("specializer: loops are written out where the shader asks for it and their rounds are known") {
  const auto loop = [](int control, const std::string& leave) {
    return stored(fmt::format(R"({}branch %h
%h = label
%i = phi %int %i0 %entry %k %c
%sum = phi %int %x %entry %next %c
loop_merge %m %c {}
branch %q
%q = label
%more = s_less_than %bool %i %i3
branch_conditional %more %t %m
%t = label
%next = i_mul %int %sum %x
{}branch %c
%c = label
%k = i_add %int %i %i1
branch %h
%m = label
%end = phi %int %sum %q{}
)",
                              loaded("x", 1), control, leave, leave.empty() ? "" : " %next %b"),
                  "%end");
  };
  const Words unrolled = special(loop(1, ""));
  CHECK(count_of(unrolled, "loop_merge") == 0);
  CHECK(count_of(unrolled, "i_mul") == 3);
  CHECK(count_of(unrolled, "label") == 1);
  CHECK(count_of(special(loop(0, "")), "loop_merge") == 1);
  const std::string leaves =
      "%stop = i_equal %bool %next %i4\nselection_merge %go 0\nbranch_conditional %stop %b %go\n%b = label\nbranch "
      "%m\n%go = label\n";
  CHECK(count_of(special(loop(1, leaves)), "loop_merge") == 1);
  // As a call leaves it that returns early: the loop goes on from inside a selection, all of whose ways leave a switch.
  const std::string returns =
      "selection_merge %done 0\nswitch %i0 %begin\n%begin = label\n%stop = i_equal %bool %next %i4\nselection_merge "
      "%go 0\nbranch_conditional %stop %b %go\n%b = label\nbranch %done\n%go = label\nbranch %done\n%done = label\n";
  std::string continues = loop(1, "");
  continues.replace(continues.find("branch %c"), 0, returns);
  CHECK(count_of(special(continues), "loop_merge") == 0);
}

TEST_CASE("specializer: a loop that is never entered goes, one without an end stays") {
  const auto loop = [](const std::string& condition) {
    return stored(fmt::format(R"(branch %h
%h = label
loop_merge %m %c 0
branch %q
%q = label
branch_conditional {} %t %m
%t = label
{}%stop = i_equal %bool %x %i4
selection_merge %go 0
branch_conditional %stop %b %go
%b = label
branch %m
%go = label
branch %c
%c = label
branch %h
%m = label
)",
                              condition, loaded("x", 1)),
                  "%i2");
  };
  CHECK(count_of(special(loop("%false")), "label") == 1);
  const Words words =
      assembled(shader_of("", "", "%main = function %void 0 %fn\n%entry = label\n" + loop("%true") + "function_end\n"));
  const Words result = vk::specialized(words, {});
  CHECK_NOTHROW(vk::check_spirv(result, "specialized"));
  CHECK(count_of(result, "loop_merge") == 1);
}

TEST_CASE("specializer: values are computed once, parts of composites are found, selections become selects") {
  const std::string declarations = "%i2v = type_vector %int 2\n";
  const std::string body = loaded("x", 1) + loaded("y", 2) + R"(%a = i_add %int %x %y
%b = i_add %int %x %y
%v = composite_construct %i2v %a %b
%w = composite_insert %i2v %i0 %v 0
%c = composite_extract %int %w 1
%one = i_mul %int %c %i1
%less = s_less_than %bool %one %x
selection_merge %m 0
branch_conditional %less %t %m
%t = label
branch %m
%m = label
%r = phi %int %x %t %y %entry
%d = i_add %int %r %c
)";
  const Words result = special(stored(body, "%d"), declarations);
  CHECK(count_of(result, "i_add") == 2);
  CHECK(count_of(result, "composite_construct") == 0);
  CHECK(count_of(result, "composite_extract") == 0);
  CHECK(count_of(result, "i_mul") == 0);
  CHECK(count_of(result, "select") == 1);
  CHECK(count_of(result, "label") == 1);
}

TEST_CASE("specializer: what is not known is left as it is") {
  const std::string main = "%main = function %void 0 %fn\n%entry = label\nreturn\nfunction_end\n";
  Words words = assembled(shader_of("", "", main));
  CHECK(vk::specialized(words, {}) != words);
  words.insert(words.end() - 1, {1U << 16 | 4999});  // an instruction that does not exist
  CHECK(vk::specialized(words, {}) == words);
  for (const char* bad : {"%x = i_add %int %nothing %i1\n", "branch %i1\n", "%x = phi %int %i1\n",
                          "%x = function_call %int %main %i1\n", "selection_merge %main 0\n", "%x = load %i1 %out\n"}) {
    CAPTURE(bad);
    const Words wrong = assembled(shader_of(
        "", "", "%main = function %void 0 %fn\n%entry = label\n" + std::string(bad) + "return\nfunction_end\n"));
    CHECK(vk::specialized(wrong, {}) == wrong);
  }
}
