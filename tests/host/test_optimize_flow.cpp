// Flow and constructs of engine/vk/optimize/flow.h, which passes decide by.
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spirv_text.h"
#include "vk/optimize/flow.h"
#include "vk/optimize/module.h"
#include "vk/shader/validate_spirv.h"

using namespace halfstep;

namespace {

/// The place of the header of the construct that each block of main() is in, by the block's place; -1 outside all.
std::map<std::uint32_t, int> constructs_of(const std::string& body) {
  const std::string main = "%main = function %void 0 %fn\n%entry = label\n" + body + "function_end\n";
  const std::vector<std::uint32_t> words = assembled(shader_of("", "", main));
  REQUIRE_NOTHROW(vk::check_spirv(words, "test"));
  const std::optional<vk::ir::Module> module = vk::ir::read(words);
  REQUIRE(module);
  const vk::ir::Function& function = module->functions.front();
  const vk::ir::Flow flow(function);
  const std::vector<std::uint32_t> headers = vk::ir::constructs(function, flow);
  std::map<std::uint32_t, int> result;
  for (const std::uint32_t b : flow.order())
    result[b] = headers[b] == vk::ir::Flow::none ? -1 : static_cast<int>(headers[b]);
  return result;
}

const std::string condition =
    "%at0 = access_chain %at %out %i0 %i0\n%x = load %int %at0\n%c = i_equal %bool %x %i1\n%d = i_equal %bool %x %i2\n";

}  // namespace

TEST_CASE("specializer: where all ways of a selection leave the switch around it, it ends with that") {
  const std::string body = condition + R"(selection_merge %done 0
switch %x %begin
%begin = label
selection_merge %go 0
branch_conditional %c %early %go
%early = label
branch %done
%go = label
branch %done
%done = label
return
)";
  // entry, begin, early, go, done
  CHECK(constructs_of(body) == std::map<std::uint32_t, int>{{0, -1}, {1, 0}, {2, 1}, {3, 0}, {4, -1}});
}

TEST_CASE("specializer: where all ways of a selection continue a loop, what continues it is in the loop alone") {
  const std::string body = condition + R"(branch %h
%h = label
loop_merge %m %next 0
branch %q
%q = label
branch_conditional %d %t %m
%t = label
selection_merge %never 0
branch_conditional %c %a %b
%a = label
branch %next
%b = label
branch %next
%never = label
unreachable
%next = label
selection_merge %more 0
branch_conditional %c %e %more
%e = label
branch %more
%more = label
branch %h
%m = label
return
)";
  // entry, h, q, t, a, b, (never), next, e, more, m
  CHECK(constructs_of(body) == std::map<std::uint32_t, int>{
                                   {0, -1}, {1, -1}, {2, 1}, {3, 1}, {4, 3}, {5, 3}, {7, 1}, {8, 7}, {9, 1}, {10, -1}});
}
