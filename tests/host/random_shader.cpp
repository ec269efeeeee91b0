#include "random_shader.h"

#include <fmt/format.h>

#include <random>
#include <utility>
#include <vector>

#include "spirv_text.h"

namespace {

class Writer {
 public:
  explicit Writer(std::uint32_t seed) : random_(seed) {}

  std::string shader() {
    const std::string functions = function("f1", 0) + function("f2", 1) + main_function();
    std::string numbers;
    for (int i = 0; i < 5; ++i) numbers += fmt::format("decorate %s{} 1 {}\n", i, i);
    return shader_of(numbers, R"(%s0 = spec_constant %int 1
%s1 = spec_constant %int 2
%s2 = spec_constant %int 3
%s3 = spec_constant %int 0
%s4 = spec_constant_true %bool
%s5 = spec_constant_op %int 128 %s0 %s1
%s6 = spec_constant_op %bool 170 %s0 %s3
%u4 = constant %uint 4
%four = type_array %int %u4
%in_four = type_pointer 7 %four
%own_four = type_pointer 6 %four
%own_int = type_pointer 6 %int
%zeros = constant_null %four
%threes = constant_composite %four %i3 %i3 %i3 %i3
%p0 = variable %own_int 6 %i1
%p1 = variable %own_four 6 %zeros
%rounds = variable %own_int 6 %i0
%f = type_function %int %in_int %int
)",
                     functions);
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<std::uint32_t>(count)); }
  std::string fresh() { return fmt::format("%x{}", next_++); }
  void add(const std::string& text) { code_ += text + "\n"; }

  /// Variables that all statements may use.
  std::string prologue() {
    return R"(%v0@ = variable %in_int 7
%v1@ = variable %in_int 7
%v2@ = variable %in_int 7
%a@ = variable %in_four 7 %threes
COUNTERS
store %v0@ %i0
store %v1@ %i1
store %v2@ %s1
)";
  }
  std::string named(std::string text) const {
    for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@')) text.replace(at, 1, name_);
    return text;
  }

  void begin(const std::string& name, int calls) {
    name_ = name;
    calls_ = calls;
    code_.clear();
    counters_.clear();
  }
  std::string finished(const std::string& head, const std::string& tail) {
    std::string text = named(prologue());
    text.replace(text.find("COUNTERS"), 8, counters_);
    return head + text + code_ + tail + "function_end\n";
  }

  std::string function(const std::string& name, int calls) {
    begin(name, calls);
    const std::string head = fmt::format(
        "%{0} = function %int 0 %f\n%q{0} = function_parameter %in_int\n%b{0} = "
        "function_parameter %int\n%e{0} = label\n",
        name);
    parameters_ = true;
    statements(2, 4);
    const std::string result = expression(2);
    return finished(head, fmt::format("return_value {}\n", result));
  }
  std::string main_function() {
    begin("main", 2);
    parameters_ = false;
    statements(3, 6);
    for (int i = 0; i < 4; ++i) output(i);
    add("%counted = load %int %rounds\n%last = access_chain %at %out %i0 %i4\nstore %last %counted");
    return finished("%main = function %void 0 %fn\n%emain = label\n", "return\n");
  }
  void output(int place) {
    const std::string at = fresh();
    const std::string value = expression(1);
    add(fmt::format("{} = access_chain %at %out %i0 %i{}\nstore {} {}", at, place, at, value));
  }

  std::string pointer() {
    const std::string at = fresh();
    switch (pick(parameters_ ? 8 : 7)) {
      case 0:
        return "%p0";
      case 1:
        add(fmt::format("{} = access_chain %own_int %p1 %i{}", at, pick(4)));
        return at;
      case 2:
        add(fmt::format("{} = access_chain %in_int {} %i{}", at, named("%a@"), pick(4)));
        return at;
      case 3: {
        if (pick(4) != 0) return named("%v0@");
        const std::string index = expression(0);
        add(fmt::format("{0}i = bitwise_and %int {1} %i3\n{0} = access_chain %in_int {2} {0}i", at, index,
                        named("%a@")));
        return at;
      }
      case 7:
        return named("%q@");
      default:
        return named(fmt::format("%v{}@", pick(3)));
    }
  }

  std::string expression(int depth) {
    const std::string result = fresh();
    if (depth == 0 || pick(4) == 0) {
      const int kind = pick(parameters_ ? 5 : 4);
      if (kind == 0) return fmt::format("%i{}", pick(5));
      if (kind == 1) return fmt::format("%s{}", pick(4));
      if (kind == 2 && pick(3) == 0) return "%s5";
      if (kind == 4) return named("%b@");
      const std::string from = pointer();
      add(fmt::format("{} = load %int {}", result, from));
      return result;
    }
    const std::string a = expression(depth - 1);
    if (pick(6) == 0) {
      add(fmt::format("{} = s_div %int {} %i{}", result, a, 1 + pick(4)));
      return result;
    }
    const std::string b = expression(depth - 1);
    if (pick(5) == 0) {
      const std::string c = condition(0);
      add(fmt::format("{} = select %int {} {} {}", result, c, a, b));
      return result;
    }
    const char* operations[] = {"i_add", "i_sub", "i_mul", "bitwise_and", "bitwise_or", "bitwise_xor"};
    add(fmt::format("{} = {} %int {} {}", result, operations[pick(6)], a, b));
    return result;
  }

  std::string condition(int depth) {
    const int kind = pick(6);
    if (kind == 0) return "%s4";
    if (kind == 1) return "%s6";
    const std::string a = expression(depth);
    const std::string b = expression(depth);
    const std::string result = fresh();
    const char* comparisons[] = {"i_equal", "i_not_equal", "s_less_than"};
    add(fmt::format("{} = {} %bool {} {}", result, comparisons[pick(3)], a, b));
    if (kind != 2) return result;
    const std::string other = condition(0);
    add(fmt::format("{0}c = {1} %bool {0} {2}", result, pick(2) == 0 ? "logical_and" : "logical_or", other));
    return result + "c";
  }

  void statements(int depth, int count) {
    for (int i = 0; i < count; ++i) statement(depth);
  }
  void statement(int depth) {
    const int kind = pick(depth > 0 ? 10 : 5);
    if (kind < 4) return assign();
    if (kind == 4) return call();
    if (kind < 7) return branch(depth);
    if (kind == 7) return fixed_loop(depth);
    if (kind == 8 && !fixed_) return loop(depth);
    choose(depth);
  }
  void assign() {
    const std::string value = expression(2);
    const std::string to = pointer();
    add(fmt::format("store {} {}", to, value));
  }
  void call() {
    if (calls_ == 0 || fixed_) return output(pick(5));
    const std::string argument = expression(1);
    const std::string result = fresh();
    add(fmt::format("{0} = function_call %int %f{1} {2} {3}\nstore {4} {0}", result, 1 + pick(calls_),
                    named(fmt::format("%v{}@", pick(3))), argument, named(fmt::format("%v{}@", pick(3)))));
  }

  /// Leaves the loop's round, the loop or the function, where that is possible; or goes to `end`.
  void leave_or(const std::string& end) {
    const int kind = pick(fixed_ ? 2 : 8);
    if (kind == 0 && !ends_.empty()) return add(fmt::format("branch {}", ends_.back()));
    if (kind == 1 && !continues_.empty()) return add(fmt::format("branch {}", continues_.back()));
    if (kind == 2 && !fixed_ && (ends_.empty() || pick(8) == 0))
      return add(parameters_ ? "return_value %i2" : "return");
    add(fmt::format("branch {}", end));
  }

  void branch(int depth) {
    const std::string c = condition(1);
    const std::string l = fresh();
    const bool otherwise = pick(2) == 0;
    add(fmt::format("selection_merge {0}m 0\nbranch_conditional {1} {0}t {0}{2}\n{0}t = label", l, c,
                    otherwise ? "e" : "m"));
    statements(depth - 1, 1 + pick(2));
    leave_or(l + "m");
    if (otherwise) {
      add(l + "e = label");
      statements(depth - 1, 1);
      leave_or(l + "m");
    }
    add(l + "m = label");
  }

  /// Counts its rounds, as many as `end` says if nothing ends it before, in a variable of its own and in one of all.
  void begin_loop(const std::string& l, const std::string& end, int control) {
    counters_ += l + "n = variable %in_int 7\n";
    add(fmt::format(R"(store {0}n %i0
branch {0}h
{0}h = label
loop_merge {0}m {0}c {2}
branch {0}q
{0}q = label
{0}i = load %int {0}n
{0}b = s_less_than %bool {0}i {1}
branch_conditional {0}b {0}t {0}m
{0}t = label)",
                    l, end, control));
  }
  void end_loop(const std::string& l, const std::string& back) {
    add(fmt::format(R"(branch {0}c
{0}c = label
{0}j = load %int {0}n
{0}k = i_add %int {0}j %i1
store {0}n {0}k
{0}r = load %int %rounds
{0}s = i_add %int {0}r %i1
store %rounds {0}s
{1}
{0}m = label)",
                    l, back));
  }

  void loop(int depth) {
    const std::string l = fresh();
    const std::string end = expression(0);
    add(fmt::format("{0}l = bitwise_and %int {1} %i3", l, end));
    begin_loop(l, l + "l", pick(2) == 0 ? 0 : unrolled_if_possible);
    ends_.push_back(l + "m");
    continues_.push_back(l + "c");
    statements(depth - 1, 1 + pick(3));
    ends_.pop_back();
    continues_.pop_back();
    // Or it ends where all loops have taken some rounds, as drivers may end them.
    const std::string limited = "{0}f = s_less_than %bool {0}s {1}\nbranch_conditional {0}f {0}h {0}m";
    const std::string limit = pick(2) == 0 ? "%s2" : "%i4";
    end_loop(l, pick(2) == 0 ? fmt::format("branch {}h", l) : fmt::format(fmt::runtime(limited), l, limit));
  }

  /// A loop of known rounds that nothing leaves, nor what is in it, which has no other loops.
  void fixed_loop(int depth) {
    const std::string l = fresh();
    begin_loop(l, fmt::format("%{}{}", pick(2) == 0 ? 'i' : 's', pick(4)), unrolled);
    const std::vector<std::string> ends = std::exchange(ends_, {});
    const std::vector<std::string> continues = std::exchange(continues_, {});
    const bool outer = std::exchange(fixed_, true);
    statements(depth - 1, 1 + pick(2));
    fixed_ = outer;
    ends_ = ends;
    continues_ = continues;
    end_loop(l, fmt::format("branch {}h", l));
  }

  void choose(int depth) {
    const std::string value = expression(1);
    const std::string l = fresh();
    const bool only_default = pick(2) == 0;  // as where a call was that returned early
    add(fmt::format(fmt::runtime(only_default ? "selection_merge {0}m 0\nswitch {1} {0}d"
                                              : "selection_merge {0}m 0\nswitch {1} {0}d 1 {0}t 2 {0}e"),
                    l, value));
    for (const char* block : {"t", "e", "d"}) {
      if (only_default && *block != 'd') continue;
      add(l + block + " = label");
      ends_.push_back(l + "m");
      statements(depth - 1, only_default ? 2 : 1);
      leave_or(l + "m");
      ends_.pop_back();
    }
    add(l + "m = label");
  }

  static constexpr int unrolled = 1;
  static constexpr int unrolled_if_possible = 5;  // with a word on dependences, which is not used

  std::mt19937 random_;
  int next_ = 0;
  std::string name_;
  std::string code_;
  std::string counters_;
  int calls_ = 0;
  bool parameters_ = false;
  bool fixed_ = false;  ///< in a loop that must be written out
  std::vector<std::string> ends_;
  std::vector<std::string> continues_;
};

}  // namespace

std::string random_shader(std::uint32_t seed) {
  return Writer(seed).shader();
}
