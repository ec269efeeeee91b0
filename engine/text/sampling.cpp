#include <halfstep/error.h>
#include <halfstep/sampling.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/philox.h"
#include "base/portable_math.h"

namespace halfstep {
namespace {

constexpr double nothing = -std::numeric_limits<double>::infinity();

[[noreturn]] void refuse(const std::string& message) {
  fail("sampling", message);
}

/// The logits with penalties, in double.
std::vector<double> scores_of(std::span<const float> logits, std::span<const std::uint32_t> previous, double penalty) {
  std::vector<double> scores(logits.begin(), logits.end());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i]) || scores[i] == -nothing) {
      throw Error(fmt::format("[sampling] expected finite logits, got {} for token {}", scores[i], i),
                  ErrorCode::numerics);
    }
  }
  std::vector<bool> seen(scores.size());
  for (const std::uint32_t token : previous) {
    if (token >= scores.size()) refuse(fmt::format("expected tokens below {}, got {}", scores.size(), token));
    if (seen[token]) continue;
    seen[token] = true;
    scores[token] = scores[token] > 0 ? scores[token] / penalty : scores[token] * penalty;
  }
  return scores;
}

/// Leaves out all scores below the k-th largest.
void keep_top_k(std::vector<double>& scores, std::int64_t k) {
  if (k < 1 || k >= static_cast<std::int64_t>(scores.size())) return;
  std::vector<double> sorted = scores;
  std::ranges::nth_element(sorted, sorted.begin() + (k - 1), std::greater<>{});
  const double least = sorted[static_cast<std::size_t>(k - 1)];
  for (double& score : scores) {
    if (score < least) score = nothing;
  }
}

/// exp(score - the largest) over its sum.
void softmax(std::vector<double>& scores) {
  const double largest = *std::ranges::max_element(scores);
  double total = 0;
  for (double& score : scores) {
    score = portable::exp(score - largest);
    total += score;
  }
  for (double& score : scores) score /= total;
}

/// Leaves out the tokens after those whose probabilities add up to p.
void keep_top_p(std::vector<double>& probabilities, double p) {
  if (p >= 1) return;
  std::vector<std::uint32_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order,
                           [&](std::uint32_t a, std::uint32_t b) { return probabilities[a] > probabilities[b]; });
  double before = 0;
  double kept = 0;
  for (const std::uint32_t token : order) {
    const double own = probabilities[token];
    if (before >= p) {
      probabilities[token] = 0;
    } else {
      kept += own;
    }
    before += own;
  }
  for (double& probability : probabilities) probability /= kept;
}

}  // namespace

void SamplingOptions::check() const {
  // Written so that NaN fails too.
  const auto expect = [](bool valid, const char* what, auto value) {
    if (!valid) refuse(fmt::format("expected {}, got {}", what, value));
  };
  expect(repetition_penalty > 0 && std::isfinite(repetition_penalty), "a positive repetition penalty",
         repetition_penalty);
  expect(temperature >= 0 && std::isfinite(temperature), "a temperature of 0 or more", temperature);
  expect(top_k >= 0, "a top_k of 0 or more", top_k);
  expect(top_p > 0 && top_p <= 1, "a top_p above 0 and up to 1", top_p);
}

std::vector<double> token_probabilities(std::span<const float> logits, std::span<const std::uint32_t> previous,
                                        const SamplingOptions& options) {
  options.check();
  std::vector<double> scores = scores_of(logits, previous, static_cast<double>(options.repetition_penalty));
  const auto largest = std::ranges::max_element(scores);
  if (largest == scores.end() || *largest == nothing) refuse("expected a token with a finite logit, got none");
  if (options.temperature == 0) {
    const auto token = largest - scores.begin();
    std::ranges::fill(scores, 0);
    scores[static_cast<std::size_t>(token)] = 1;
    return scores;
  }
  // The largest is subtracted first: a small temperature makes no infinities.
  const double top = *largest;
  for (double& score : scores) score = (score - top) / static_cast<double>(options.temperature);
  keep_top_k(scores, options.top_k);
  softmax(scores);
  keep_top_p(scores, static_cast<double>(options.top_p));
  return scores;
}

std::uint32_t sample_token(std::span<const float> logits, std::span<const std::uint32_t> previous,
                           const SamplingOptions& options, std::uint64_t sequence) {
  const std::vector<double> probabilities = token_probabilities(logits, previous, options);
  const std::uint64_t position = previous.size();
  const auto words =
      process::philox4x32({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
                           static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)},
                          process::philox_key(options.seed));
  const double draw = (std::ldexp(words[0] >> 5, 26) + static_cast<double>(words[1] >> 6)) * 0x1p-53;  // [0, 1)
  double sum = 0;
  std::uint32_t last = 0;
  for (std::uint32_t token = 0; token < probabilities.size(); ++token) {
    if (probabilities[token] == 0) continue;
    last = token;
    sum += probabilities[token];
    if (draw < sum) return token;
  }
  return last;  // where the sum was rounded to less than 1
}

}  // namespace halfstep
