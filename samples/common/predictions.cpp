#include "samples/common/predictions.h"

#include <fmt/format.h>

#include <algorithm>

#include "samples/common/command_line.h"
#include "samples/common/contact_sheet.h"

using namespace halfstep;

namespace samples {
namespace {

/// A few of the set's images, from all over it.
Dataset some_of(const Dataset& set) {
  constexpr std::int64_t most = 15;
  Dataset some;
  some.sample_shape = set.sample_shape;
  some.classes = set.classes;
  some.count = std::min(most, set.count);
  const std::int64_t bytes = set.sample_bytes();
  for (std::int64_t i = 0; i < some.count; ++i) {
    const std::int64_t place = i * set.count / some.count;
    const auto first = set.samples.begin() + place * bytes;
    some.samples.insert(some.samples.end(), first, first + bytes);
    some.labels.push_back(set.labels[static_cast<std::size_t>(place)]);
  }
  return some;
}

ModelDescription with_input(ModelDescription model, const Shape& input) {
  model.input = input;
  return model;
}

}  // namespace

Predictions::Predictions(const Trainer& trainer, Weights weights, ModelDescription model, const Data& data,
                         std::filesystem::path folder)
    : folder_(std::move(folder)),
      images_(some_of(data.test)),
      classifier_(trainer, weights, with_input(std::move(model), data.test.sample_shape), images_.count) {
  for (const std::uint32_t label : images_.labels) names_.push_back(data.classes[label]);
  make_folder("--pictures", folder_);
}

Predictions::Sheet Predictions::draw(std::uint64_t step) {
  const std::filesystem::path file = folder_ / fmt::format("predictions-{:08}.png", step);
  const std::vector<std::vector<Guess>> guesses = classifier_.guesses(images_);
  std::vector<std::string> captions;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    captions.push_back(names_[i] + (guesses[i].front().name == names_[i] ? "" : ", wrong"));
  }
  const auto [width, height] = write_contact_sheet(file, images_, captions, guesses);
  return {file, width, height};
}

}  // namespace samples
