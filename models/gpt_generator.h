#pragma once

#include <halfstep/device.h>
#include <halfstep/predictor.h>
#include <halfstep/sampling.h>

#include <functional>
#include <optional>
#include <string>

#include "models/gpt.h"

namespace halfstep::models {

/// A text to go on from.
struct Prompt {
  std::vector<std::uint32_t> tokens{};  ///< at least one, all below the vocabulary
  std::uint64_t sequence = 0;           ///< keys what is drawn: one number for each of several texts from one prompt
};

struct GenerationOptions {
  SamplingOptions sampling{};
  std::int64_t tokens = 100;           ///< that each text gets at most
  std::optional<std::uint32_t> end{};  ///< the token that a text ends with
  std::uint32_t vocabulary = 0;        ///< only tokens below this are drawn; 0: all
  /// Called with each token as it is drawn: the prompt's index, and the token.
  std::function<void(std::size_t prompt, std::uint32_t token)> drawn{};
  /// Called before each token; true ends all texts.
  std::function<bool()> stop = [] { return false; };
};

/// Generates texts with a GPT, a batch at a time. Each token is computed once: the keys and values of those before it
/// are kept on the device. The draws for a text depend on its prompt, its sequence number and the seed, not on the
/// batch that it is in; only the last bits of logits may, as kernels for other sizes add up in other orders. To be used
/// by one thread at a time.
class HALFSTEP_API GptGenerator {
 public:
  struct Sizes {
    GptOptions model{};                 ///< without dropout, whatever it says
    std::string scope = "transformer";  ///< of the parameters; or "", as in some of Hugging Face's files
    std::int64_t batch = 1;             ///< prompts at a time, at most
    std::int64_t prompt = 1;            ///< tokens of a prompt that the model sees: its last; half the positions at least
  };
  /// With weights of its own, which load_weights() reads. Throws Error for sizes that are not possible, and as
  /// Predictor::compile does. Blocks while kernels are compiled.
  GptGenerator(const Device& device, const Sizes& sizes, const Precision& precision = Precision::float32());
  /// With those that the trainer has at the time. Throws Error likewise.
  GptGenerator(const Trainer& trainer, const Sizes& sizes);

  /// See Predictor::load_weights.
  LoadReport load_weights(const std::filesystem::path& path, const LoadOptions& options = {});

  /// What follows each of up to `batch` prompts, the token that ends it included. A text that fills the model's
  /// positions goes on from its last tokens, half as many, which are computed anew. Blocks until all are done. Throws
  /// Error if there are more prompts, one is empty or has a token beyond the vocabulary, or an option is not valid;
  /// and if a logit is not finite.
  std::vector<std::vector<std::uint32_t>> generate(const std::vector<Prompt>& prompts,
                                                   const GenerationOptions& options);

 private:
  /// A text as it grows.
  struct Text {
    std::vector<std::uint32_t> tokens;
    std::uint64_t sequence = 0;
    std::size_t kept = 0;   ///< of its last tokens, that the caches have
    bool computed = false;  ///< whether they have any
    bool done = false;
  };
  void check(const std::vector<Prompt>& prompts, const GenerationOptions& options) const;
  std::vector<float> run_prompts(std::vector<Text>& texts);
  std::vector<float> run_next(const std::vector<Text>& texts);
  bool full(const Text& text) const;

  Sizes sizes_;
  std::optional<Predictor> prompt_;
  std::optional<Predictor> next_;
};

}  // namespace halfstep::models
