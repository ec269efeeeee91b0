#include "bench/machine_code.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace bench {
namespace {

struct Line {
  std::string_view operation;
  std::string_view text;
};

struct Loop {
  std::size_t begin = 0;  ///< lines, to the backward branch
  std::size_t end = 0;
  std::uint32_t rounds = 0;  ///< 0 if they are not known

  bool contains(const Loop& other) const {
    return begin <= other.begin && other.end <= end && end - begin > other.end - other.begin;
  }
};

bool starts_with_any(std::string_view text, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool is_slow(std::string_view operation) {
  constexpr std::array<std::string_view, 11> slow{"v_rcp",        "v_rsq",        "v_sqrt",   "v_exp",
                                                  "v_log",        "v_sin",        "v_cos",    "v_mul_lo_u32",
                                                  "v_mul_hi_u32", "v_mul_lo_i32", "v_mad_u64"};
  return starts_with_any(operation, slow);
}

bool is_packed16(std::string_view operation) {
  constexpr std::array<std::string_view, 3> packed{"v_pk_fma_f16", "v_dot2", "v_pk_fmac_f16"};
  return starts_with_any(operation, packed);
}

bool is_mixed16(std::string_view operation) {
  constexpr std::array<std::string_view, 2> mixed{"v_fma_mix", "v_mad_mix"};
  return starts_with_any(operation, mixed);
}

bool is_float32(std::string_view operation) {
  constexpr std::array<std::string_view, 6> names{"v_fma_f32", "v_fmac_f32",  "v_mac_f32",
                                                  "v_mad_f32", "v_fmamk_f32", "v_fmaak_f32"};
  return starts_with_any(operation, names);
}

/// Bytes that one invocation moves, by the ends of names: "b128", "dwordx4", "u16".
double access_bytes(std::string_view operation) {
  constexpr std::array<std::pair<std::string_view, double>, 16> widths{{{"x4", 16},
                                                                        {"b128", 16},
                                                                        {"x3", 12},
                                                                        {"b96", 12},
                                                                        {"x2", 8},
                                                                        {"b64", 8},
                                                                        {"dword", 4},
                                                                        {"b32", 4},
                                                                        {"short", 2},
                                                                        {"b16", 2},
                                                                        {"u16", 2},
                                                                        {"i16", 2},
                                                                        {"hi", 2},
                                                                        {"byte", 1},
                                                                        {"u8", 1},
                                                                        {"b8", 1}}};
  double bytes = 4;
  for (const auto& [end, width] : widths) {
    if (operation.find(end) == std::string_view::npos) continue;
    bytes = width;
    break;
  }
  const bool two = operation.find("read2") != std::string_view::npos ||
                   operation.find("write2") != std::string_view::npos ||
                   operation.find("2addr") != std::string_view::npos;
  return two ? 2 * bytes : bytes;
}

void count_vector(Mix& mix, std::string_view operation) {
  if (operation.starts_with("v_wmma") || operation.starts_with("v_swmmac") || operation.starts_with("v_mfma")) {
    ++mix.matrix;
  } else if (is_packed16(operation)) {
    ++mix.packed16;
  } else if (is_mixed16(operation)) {
    ++mix.mixed16;
  } else if (is_float32(operation)) {
    ++mix.float32;
  } else {
    ++mix.vector_other;
    if (is_slow(operation)) ++mix.slow;
  }
}

/// "v_dual_fmac_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5": two instructions that are issued as one.
void count_pair(Mix& mix, std::string_view text) {
  const std::size_t second = text.find(":: v_dual_");
  for (std::string_view part : {text, second != std::string_view::npos ? text.substr(second + 3) : text}) {
    part.remove_prefix(std::string_view("v_dual_").size());
    const bool multiply_add = part.starts_with("fma");
    const bool of_pairs = part.starts_with("dot2");
    ++(multiply_add ? mix.float32 : of_pairs ? mix.packed16 : mix.vector_other);
    if (multiply_add) ++mix.paired32;
  }
}

void count_memory(Mix& mix, std::string_view operation) {
  if (operation.starts_with("scratch_")) {
    ++mix.spills;
  } else if (operation.find("_load") != std::string_view::npos) {
    const double bytes = access_bytes(operation);
    ++mix.loads;
    if (bytes < 16) ++mix.narrow_loads;
    mix.load_bytes += bytes;
  } else if (operation.find("_store") != std::string_view::npos) {
    ++mix.stores;
    mix.store_bytes += access_bytes(operation);
  }
}

void count(Mix& mix, const Line& line) {
  constexpr std::array<std::string_view, 3> memory{"buffer_", "global_", "flat_"};
  constexpr std::array<std::string_view, 4> waits{"s_wait", "s_barrier", "s_sleep", "s_nop"};
  constexpr std::array<std::string_view, 8> silent{"s_delay_alu", "s_wait_alu", "s_waitcnt_depctr", "s_clause",
                                                   "s_cbranch",   "s_branch",   "s_endpgm",         "s_inst_prefetch"};
  const std::string_view operation = line.operation;
  if (starts_with_any(operation, silent)) return;
  if (operation.starts_with("v_dual_")) {
    count_pair(mix, line.text);
  } else if (operation.starts_with("v_")) {
    count_vector(mix, operation);
  } else if (operation.starts_with("ds_")) {
    ++mix.local;
    mix.local_bytes += access_bytes(operation);
  } else if (starts_with_any(operation, memory) || operation.starts_with("scratch_")) {
    count_memory(mix, operation);
  } else if (starts_with_any(operation, waits)) {
    ++mix.waits;
  } else if (operation.starts_with("s_")) {
    ++mix.scalar;
  }
}

/// The block that a branch goes to; empty if the line is no branch.
std::string_view branch_target(const Line& line) {
  if (!line.operation.starts_with("s_branch") && !line.operation.starts_with("s_cbranch")) return {};
  const std::size_t at = line.text.find("BB");
  if (at == std::string_view::npos) return {};
  return line.text.substr(at, line.text.find_first_not_of("0123456789", at + 2) - at);
}

struct Code {
  std::vector<Line> lines;
  std::vector<Loop> loops;
};

std::string_view trimmed(std::string_view line) {
  line = line.substr(0, line.find(';'));
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t") - first + 1);
}

/// "(then repeated 3 times)", of the line before; 0 if the line says nothing of the kind.
std::size_t repeats(std::string_view line) {
  constexpr std::string_view words = "(then repeated ";
  std::size_t count = 0;
  if (line.starts_with(words)) std::from_chars(line.data() + words.size(), line.data() + line.size(), count);
  return count;
}

/// The operands of "s_add_u32 s4, s4, 1".
std::vector<std::string_view> operands_of(const Line& line) {
  std::vector<std::string_view> operands;
  std::string_view rest = line.text.substr(line.operation.size());
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view operand = rest.substr(0, end);
    operands.push_back(operand.substr(std::min(operand.find_first_not_of(' '), operand.size())));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return operands;
}

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// The number that ends the first instruction of that kind and destination.
std::optional<std::uint32_t> number_in(std::span<const Line> lines, std::string_view operation, std::string_view to) {
  for (const Line& line : lines) {
    if (!line.operation.starts_with(operation)) continue;
    const std::vector<std::string_view> operands = operands_of(line);
    if (operands.front() == to) return number_of(operands.back());
  }
  return {};
}

/// How often a loop runs that counts a scalar register from 0 in equal steps to a constant, the largest that it is
/// compared with; else 0.
std::uint32_t rounds_of(std::span<const Line> lines, const Loop& loop) {
  constexpr std::size_t before = 8;  // lines in which the register is set
  const std::size_t first = loop.begin - std::min(before, loop.begin);
  const std::span<const Line> inside = lines.subspan(loop.begin, loop.end - loop.begin);
  std::uint32_t rounds = 0;
  for (const Line& line : inside) {
    if (!line.operation.starts_with("s_cmp_")) continue;
    const std::vector<std::string_view> compared = operands_of(line);
    const std::uint32_t last = number_of(compared.back()).value_or(0);
    const std::uint32_t step = number_in(inside, "s_add", compared.front()).value_or(0);
    const bool from_zero = number_in(lines.subspan(first, loop.begin - first), "s_mov", compared.front()) == 0;
    if (step > 0 && from_zero) rounds = std::max(rounds, (last + step - 1) / step);
  }
  return rounds;
}

Code parse(std::string_view text) {
  Code code;
  std::map<std::string_view, std::size_t> blocks;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (line.starts_with("BB") && line.ends_with(":")) {
      blocks[line.substr(0, line.size() - 1)] = code.lines.size();
    } else if (line.front() == '(') {
      if (!code.lines.empty()) code.lines.insert(code.lines.end(), repeats(line), Line(code.lines.back()));
    } else {
      code.lines.push_back({line.substr(0, line.find(' ')), line});
      const auto target = blocks.find(branch_target(code.lines.back()));
      if (target == blocks.end()) continue;
      code.loops.push_back({.begin = target->second, .end = code.lines.size()});
      code.loops.back().rounds = rounds_of(code.lines, code.loops.back());
    }
  }
  return code;
}

/// The mix of a part of the code without another, in which loops count as often as they run, or once if that is not
/// known.
Mix mix_of(const Code& code, const Loop& part, const Loop& without = {}) {
  Mix mix;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    if (without.begin <= i && i < without.end) continue;
    std::uint32_t times = 1;
    for (const Loop& loop : code.loops) {
      if (part.contains(loop) && loop.begin <= i && i < loop.end && loop.rounds > 0) times *= loop.rounds;
    }
    for (std::uint32_t t = 0; t < times; ++t) count(mix, code.lines[i]);
  }
  return mix;
}

/// Floating-point operations of an invocation outside of all loops whose rounds are not known.
double straight_flops(const Code& code) {
  double flops = 0;
  for (std::size_t i = 0; i < code.lines.size(); ++i) {
    const bool in_loop = std::ranges::any_of(
        code.loops, [i](const Loop& loop) { return loop.rounds == 0 && loop.begin <= i && i < loop.end; });
    Mix mix;
    if (!in_loop) count(mix, code.lines[i]);
    flops += mix.flops(1);
  }
  return flops;
}

/// Whether it is a part of a round of another loop: it is in one, and runs a known number of times.
bool is_part_of_round(const Code& code, const Loop& loop) {
  return loop.rounds > 0 && std::ranges::any_of(code.loops, [&](const Loop& other) { return other.contains(loop); });
}

}  // namespace

double Mix::flops(std::uint32_t lanes) const {
  constexpr double fragment = 2.0 * 16 * 16 * 16;  // of a whole subgroup
  return fragment * matrix + lanes * (4.0 * packed16 + 2.0 * mixed16 + 2.0 * float32);
}

MachineCode read_machine_code(std::string_view disassembly) {
  const Code code = parse(disassembly);
  const Loop all{.begin = 0, .end = code.lines.size()};
  MachineCode result{
      .whole = mix_of(code, all), .inner_loop = {}, .outside = mix_of(code, all), .has_loops = !code.loops.empty()};
  // From the outermost inwards, as long as a loop has most of the multiply-adds.
  std::vector<Loop> loops = code.loops;
  std::ranges::sort(loops, std::greater{}, [](const Loop& loop) { return loop.end - loop.begin; });
  double most = straight_flops(code);
  for (const Loop& loop : loops) {
    if (is_part_of_round(code, loop)) continue;
    const Mix mix = mix_of(code, loop);
    if (mix.flops(1) == 0 || mix.flops(1) < most / 2) continue;
    most = mix.flops(1);
    result.inner_loop = mix;
    result.outside = mix_of(code, all, loop);
  }
  return result;
}

}  // namespace bench
