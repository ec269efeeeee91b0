// How the next token is drawn, against numbers worked out by hand.
#include <halfstep/error.h>
#include <halfstep/sampling.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace halfstep {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Logits of probabilities 0.1, 0.2, 0.3 and 0.4.
const std::vector<float> four{std::log(1.0F), std::log(2.0F), std::log(3.0F), std::log(4.0F)};

void check_probabilities(std::span<const float> logits, const SamplingOptions& options,
                         const std::vector<double>& wanted, const std::vector<std::uint32_t>& previous = {}) {
  const std::vector<double> got = token_probabilities(logits, previous, options);
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-6));
}

}  // namespace

TEST_CASE("sampling: temperature, then top-k, then top-p") {
  check_probabilities(four, {}, {0.1, 0.2, 0.3, 0.4});
  check_probabilities(four, {.temperature = 0.5F}, {1.0 / 30, 4.0 / 30, 9.0 / 30, 16.0 / 30});
  check_probabilities(four, {.top_k = 2}, {0, 0, 3.0 / 7, 4.0 / 7});
  check_probabilities(four, {.top_k = 9}, {0.1, 0.2, 0.3, 0.4});
  check_probabilities(four, {.top_p = 0.65F}, {0, 0, 3.0 / 7, 4.0 / 7});
  check_probabilities(four, {.top_p = 0.75F}, {0, 2.0 / 9, 3.0 / 9, 4.0 / 9});
  check_probabilities(four, {.top_p = 1e-6F}, {0, 0, 0, 1});
  // Half of the probability takes one token of the sharper distribution, and two of the other.
  check_probabilities(four, {.temperature = 0.5F, .top_p = 0.5F}, {0, 0, 0, 1});
  check_probabilities(four, {.top_p = 0.5F}, {0, 0, 3.0 / 7, 4.0 / 7});
  // After top-k the likelier of two tokens has more than half.
  check_probabilities(four, {.top_k = 2, .top_p = 0.5F}, {0, 0, 0, 1});
}

TEST_CASE("sampling: equal logits") {
  const std::vector<float> ties{1, 2, 2, 0};
  const double e = std::exp(1.0);
  check_probabilities(ties, {.top_k = 1}, {0, 0.5, 0.5, 0});
  check_probabilities(ties, {.temperature = 0}, {0, 1, 0, 0});
  check_probabilities(ties, {.top_p = 0.3F}, {0, 1, 0, 0});
  check_probabilities(ties, {.top_k = 3}, {1 / (1 + 2 * e), e / (1 + 2 * e), e / (1 + 2 * e), 0});
}

TEST_CASE(
    "sampling: the repetition penalty divides positive logits and multiplies negative ones, once for each token") {
  const std::vector<float> logits{2, -2, 1};
  const double low = std::exp(-5.0);
  check_probabilities(logits, {.repetition_penalty = 2}, {1 / (2 + low), low / (2 + low), 1 / (2 + low)}, {0, 1, 0});
  check_probabilities(logits, {.repetition_penalty = 4, .temperature = 0}, {0, 0, 1}, {0});
  check_probabilities(logits, {.temperature = 0}, {1, 0, 0}, {0});
}

TEST_CASE("sampling: tiny temperatures and large logits do not overflow") {
  const std::vector<float> large{3e38F, -3e38F, 3e38F};
  check_probabilities(large, {}, {0.5, 0, 0.5});
  check_probabilities(four, {.temperature = 1e-30F}, {0, 0, 0, 1});
  check_probabilities(std::vector<float>{0, -infinity}, {}, {1, 0});
}

TEST_CASE("sampling names what it cannot draw from") {
  const auto refuses = [](const std::vector<float>& logits, const SamplingOptions& options, const char* message,
                          const std::vector<std::uint32_t>& previous = {}) {
    CHECK_THROWS_WITH_AS(sample_token(logits, previous, options), message, Error);
  };
  refuses({0, nan}, {}, "[sampling] expected finite logits, got nan for token 1");
  refuses({0, nan}, {.temperature = 0}, "[sampling] expected finite logits, got nan for token 1");
  refuses({infinity, 0}, {}, "[sampling] expected finite logits, got inf for token 0");
  refuses({-infinity, -infinity}, {}, "[sampling] expected a token with a finite logit, got none");
  refuses({}, {}, "[sampling] expected a token with a finite logit, got none");
  refuses({0, 0}, {}, "[sampling] expected tokens below 2, got 2", {1, 2});
  refuses({0}, {.repetition_penalty = 0}, "[sampling] expected a positive repetition penalty, got 0");
  refuses({0}, {.temperature = -1}, "[sampling] expected a temperature of 0 or more, got -1");
  refuses({0}, {.temperature = nan}, "[sampling] expected a temperature of 0 or more, got nan");
  refuses({0}, {.top_k = -1}, "[sampling] expected a top_k of 0 or more, got -1");
  refuses({0}, {.top_p = 0}, "[sampling] expected a top_p above 0 and up to 1, got 0");
  refuses({0}, {.top_p = 1.5F}, "[sampling] expected a top_p above 0 and up to 1, got 1.5");
}

TEST_CASE("sampling draws each token as often as its probability says") {
  constexpr int draws = 20000;
  std::vector<int> counts(four.size());
  for (int i = 0; i < draws; ++i) ++counts[sample_token(four, {}, {}, static_cast<std::uint64_t>(i))];
  for (std::size_t i = 0; i < counts.size(); ++i) {
    CHECK(counts[i] / double{draws} == doctest::Approx(0.1 * static_cast<double>(i + 1)).epsilon(0.05));
  }
}

TEST_CASE("a draw depends on the seed, the sequence and the number of tokens before") {
  const std::vector<float> logits(1000);  // all alike
  const std::vector<std::uint32_t> one{0};
  const std::uint32_t token = sample_token(logits, {}, {});
  CHECK(sample_token(logits, {}, {}) == token);
  CHECK(sample_token(logits, {}, {.seed = 43}) != token);
  CHECK(sample_token(logits, {}, {}, 1) != token);
  CHECK(sample_token(logits, one, {}) != token);
  CHECK(sample_token(logits, one, {}) == sample_token(logits, std::vector<std::uint32_t>{7}, {}));
}

}  // namespace halfstep
