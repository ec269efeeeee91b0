// Operations across subgroups, each against what the invocations' numbers say.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/device.h"
#include "selftest/bed.h"
#include "selftest/numbers.h"

namespace halfstep::selftest {
namespace {

/// The values of a subgroup's invocations, by their number in it.
using Members = std::map<std::uint32_t, std::uint32_t>;
/// The result of an invocation.
using Right = std::function<std::uint32_t(const Members&, std::uint32_t me)>;

template <typename Combine>
Right over(Combine combine, std::uint32_t start) {
  return [=](const Members& members, std::uint32_t) {
    std::uint32_t all = start;
    for (const auto& [who, value] : members) all = combine(all, value);
    return all;
  };
}

Right prefix(bool inclusive) {
  return [=](const Members& members, std::uint32_t me) {
    std::uint32_t sum = 0;
    for (const auto& [who, value] : members) sum += who < me || (inclusive && who == me) ? value : 0;
    return sum;
  };
}

std::uint32_t at(const Members& members, std::uint32_t who) {
  const auto found = members.find(who);
  return found == members.end() ? 0 : found->second;
}

/// What is wrong of one operation's results, or an empty text.
std::string objection(const Words& source, const Words& result, std::uint32_t workgroup, std::uint32_t size,
                      const Right& right) {
  std::map<std::pair<std::size_t, std::uint32_t>, Members> subgroups;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (result[4 * i + 2] != size)
      return fmt::format("gl_SubgroupSize is {} where subgroups of {} were asked for", result[4 * i + 2], size);
    if (result[4 * i + 1] >= size) return fmt::format("invocation {} of a subgroup of {}", result[4 * i + 1], size);
    Members& members = subgroups[{i / workgroup, result[4 * i]}];
    if (!members.emplace(result[4 * i + 1], source[i]).second)
      return fmt::format("two invocations of subgroup {} are number {}", result[4 * i], result[4 * i + 1]);
  }
  for (std::size_t i = 0; i < source.size(); ++i) {
    const Members& members = subgroups.at({i / workgroup, result[4 * i]});
    if (members.size() != size)
      return fmt::format("subgroup {} has {} invocations, not {}", result[4 * i], members.size(), size);
    const std::uint32_t want = right(members, result[4 * i + 1]);
    if (result[4 * i + 3] != want)
      return fmt::format("invocation {} of {} has {}, not {}", result[4 * i + 1], members.size(), result[4 * i + 3],
                         want);
  }
  return {};
}

struct Named {
  std::string operation;
  VkSubgroupFeatureFlags needs;
  Right right;
};

std::vector<Named> operations() {
  using U = std::uint32_t;
  return {
      {"elect", VK_SUBGROUP_FEATURE_BASIC_BIT, [](const Members& m, U me) { return me == m.begin()->first ? 1U : 0U; }},
      {"add", VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, over([](U a, U b) { return a + b; }, 0)},
      {"min", VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, over([](U a, U b) { return std::min(a, b); }, ~0U)},
      {"max", VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, over([](U a, U b) { return std::max(a, b); }, 0)},
      {"mul_float", VK_SUBGROUP_FEATURE_ARITHMETIC_BIT,
       [](const Members& m, U) {
         float sum = 0;
         for (const auto& [who, value] : m) sum += static_cast<float>(value & 1023U);
         return bits_of(sum);
       }},
      {"inclusive", VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, prefix(true)},
      {"exclusive", VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, prefix(false)},
      {"shuffle", VK_SUBGROUP_FEATURE_SHUFFLE_BIT,
       [](const Members& m, U me) { return at(m, static_cast<U>(m.size()) - 1 - me); }},
      {"shuffle_xor", VK_SUBGROUP_FEATURE_SHUFFLE_BIT, [](const Members& m, U me) { return at(m, me ^ 1U); }},
      {"broadcast", VK_SUBGROUP_FEATURE_BALLOT_BIT, [](const Members& m, U) { return at(m, 2); }},
      {"ballot", VK_SUBGROUP_FEATURE_BALLOT_BIT,
       [](const Members& m, U) {
         return static_cast<U>(std::ranges::count_if(m, [](const auto& one) { return one.second % 2 == 1; }));
       }},
      {"vote", VK_SUBGROUP_FEATURE_VOTE_BIT,
       [](const Members& m, U) {
         const bool any = std::ranges::any_of(m, [](const auto& one) { return one.second % 8 == 0; });
         const bool all = std::ranges::all_of(m, [](const auto& one) { return one.second % 4 != 0; });
         return (any ? 1U : 0U) | (all ? 2U : 0U);
       }},
  };
}

void check_subgroups(CaseReport& report) {
  const vk::Capabilities& device = testing::context().capabilities();
  const std::uint32_t size = testing::context().target().subgroups.size;
  if (size == 0) return set_missing(report, "the device's subgroups are not known to have one size");
  report.facts.push_back(fmt::format("subgroups of {}", size));
  for (const Named& one : operations()) {
    if ((device.subgroup_operations & one.needs) == 0) {
      report.facts.push_back(fmt::format("no {}", one.operation));
      continue;
    }
    for (const std::uint32_t seed : {11U, 12U, 13U}) {
      Words source(256);
      std::uint32_t state = seed;
      for (std::uint32_t& word : source) word = next_random(state) >> (seed == 13U ? 29U : 8U);
      const std::uint32_t workgroup = std::max(64U, size);
      const Launch launch{"subgroup." + one.operation, {workgroup}, {}, {0, 1}, {256 / workgroup, 1, 1}};
      const Outcome outcome = run({launch}, {source, Words(1024, 0xA5A5A5A5U)});
      const std::string wrong = objection(source, outcome.buffers[1], workgroup, size, one.right);
      if (wrong.empty()) continue;
      add_fault(report, one.operation + ": " + wrong);
      if (report.kernel.empty()) report.kernel = last_kernel();
      break;
    }
  }
}

}  // namespace

std::vector<Case> subgroup_cases() {
  return {{"subgroup/operations", "Sums, scans, shuffles, votes and ballots of full subgroups", Wanted::quick,
           check_subgroups}};
}

}  // namespace halfstep::selftest
