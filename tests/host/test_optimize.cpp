// The specializer of kernels, engine/vk/optimize/: shaders compute the same before and after, and stay valid.
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <random>

#include "random_shader.h"
#include "spirv_run.h"
#include "spirv_text.h"
#include "vk/optimize/specialized.h"
#include "vk/shader/spirv.h"
#include "vk/shader/validate_spirv.h"

using namespace halfstep;

namespace {

bool is_valid(const std::vector<std::uint32_t>& words) {
  try {
    vk::check_spirv(words, "changed");
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The number of loops that random_shader() means to be written out.
std::size_t unrolled_loops(const std::vector<std::uint32_t>& words) {
  std::size_t loops = 0;
  vk::for_each_instruction(words, [&](const vk::Instruction& i) {
    if (i.opcode == vk::op_loop_merge && i.operand(3) == 1) ++loops;
  });
  return loops;
}

}  // namespace

TEST_CASE("specializer: random shaders compute the same") {
  std::mt19937 random(1);
  int invalid = 0;
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    const std::vector<std::uint32_t> words = assembled(random_shader(seed));
    if (!is_valid(words)) {
      ++invalid;
      continue;
    }
    vk::Constants constants;
    for (std::uint32_t i = 0; i < 5; ++i) {
      if (random() % 4 != 0) constants[i] = random() % 4;
    }
    const std::vector<std::uint32_t> special = vk::specialized(words, constants);
    CHECK(special != words);
    CHECK_NOTHROW(vk::check_spirv(special, "specialized"));
    CHECK(run_shader(words, constants) == run_shader(special, {}));
    CHECK(unrolled_loops(special) == 0);
  }
  CHECK(invalid < 20);
}

namespace {

/// Words with one that is another.
std::vector<std::uint32_t> changed(std::vector<std::uint32_t> words, std::mt19937& random) {
  const std::size_t at = 5 + random() % (words.size() - 5);
  switch (random() % 4) {
    case 0:
      words[at] = static_cast<std::uint32_t>(random());
      break;
    case 1:
      words[at] = words[5 + random() % (words.size() - 5)];
      break;
    case 2:
      words[at] ^= 1U << random() % 32;
      break;
    default:
      words[at] += static_cast<std::uint32_t>(random() % 5) - 2;
  }
  return words;
}

}  // namespace

TEST_CASE("specializer: a changed word makes no valid shader an invalid one, and never does harm") {
  std::mt19937 random(2);
  std::size_t valid = 0;
  for (std::uint32_t seed = 0; seed < 25; ++seed) {
    const std::vector<std::uint32_t> words = assembled(random_shader(seed));
    for (int change = 0; change < 100; ++change) {
      const std::vector<std::uint32_t> other = changed(words, random);
      const std::vector<std::uint32_t> special = vk::specialized(other, {{0, 1}, {4, 0}});
      if (special == other || !is_valid(other)) continue;
      ++valid;
      CAPTURE(seed);
      CAPTURE(change);
      CHECK(is_valid(special));
    }
  }
  CHECK(valid > 100);
}
