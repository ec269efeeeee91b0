#pragma once

#include <halfstep/language.h>

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep {

/// How the next token is drawn from a model's logits: as Hugging Face's transformers does, in this order.
struct HALFSTEP_API SamplingOptions {
  /// The logit of a token that is in the text already is divided by this if it is positive, and multiplied by it if it
  /// is negative: Keskar et al. 2019. 1: no penalty.
  float repetition_penalty = 1;
  float temperature = 1;   ///< logits are divided by it; 0: the token with the largest logit, the first of equal ones
  std::int64_t top_k = 0;  ///< only tokens with a logit of the k largest, and those equal to the last; 0: all
  /// Only the most likely tokens, as many as it takes for their probabilities to add up to this: Holtzman et al. 2020.
  /// Of equally likely ones the first come first; at least one stays. 1: all.
  float top_p = 1;
  std::uint64_t seed = 42;

  /// Throws Error unless the penalty is positive, the temperature and k are not negative, p is above 0 and at most 1,
  /// and all are finite.
  void check() const;
};

/// The probabilities of the tokens that `logits` are of, after a text of tokens `previous`; those that are never drawn
/// have 0. Computed in double. Throws Error if the options are not valid, a logit is NaN or infinite, or all are minus
/// infinity (some may be), or a token of the text has no logit.
HALFSTEP_API std::vector<double> token_probabilities(std::span<const float> logits,
                                                     std::span<const std::uint32_t> previous,
                                                     const SamplingOptions& options);

/// Draws a token with these probabilities. The draw depends only on the seed, `sequence` (which of several texts) and
/// the number of tokens in `previous`. Throws Error as token_probabilities() does.
HALFSTEP_API std::uint32_t sample_token(std::span<const float> logits, std::span<const std::uint32_t> previous,
                                        const SamplingOptions& options, std::uint64_t sequence = 0);

}  // namespace halfstep
