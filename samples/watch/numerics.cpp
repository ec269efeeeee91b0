#include "samples/watch/numerics.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "samples/watch/fields.h"

namespace samples {
namespace {

constexpr std::size_t most_bins = 256;            ///< that a record may have
constexpr std::size_t most_picture_columns = 60;  ///< of a picture
constexpr int f16_smallest = -14;                 ///< exponents of f16's normal numbers: from here
constexpr int f16_beyond = 16;                    ///< to before here
constexpr double picture_width = 300;             ///< of a picture
constexpr double picture_height = 190;
constexpr double picture_gap = 20;
constexpr double picture_left = 44;
constexpr double picture_top = 24;
constexpr double picture_bottom = 20;

std::string bad_text(const Record& record) {
  const double infinities = amount(record, "infinities");
  const double nans = amount(record, "nans");
  if (nans == 0) return fmt::format("{:.0f} infinite", infinities);
  return infinities == 0 ? fmt::format("{:.0f} NaN", nans)
                         : fmt::format("{:.0f} infinite, {:.0f} NaN", infinities, nans);
}

/// Exponents that any of the tensors has, and those of f16's range.
struct Exponents {
  int low = f16_smallest - 2;
  int high = f16_beyond + 1;  ///< one past the last

  explicit Exponents(const std::vector<const TensorHistory*>& tensors) {
    for (const TensorHistory* tensor : tensors) {
      for (const TensorHistory::Look& look : tensor->looks) {
        for (std::size_t i = 0; i < look.shares.size(); ++i) {
          if (look.shares[i] <= 0) continue;
          low = std::min(low, tensor->first_exponent + static_cast<int>(i));
          high = std::max(high, tensor->first_exponent + static_cast<int>(i) + 1);
        }
      }
    }
  }
};

/// The mean of some looks.
std::vector<double> mean_of(const std::vector<TensorHistory::Look>& looks, std::size_t first, std::size_t end) {
  std::vector<double> mean;
  for (std::size_t i = first; i < end; ++i) {
    mean.resize(std::max(mean.size(), looks[i].shares.size()));
    for (std::size_t bin = 0; bin < looks[i].shares.size(); ++bin) mean[bin] += looks[i].shares[bin];
  }
  for (double& share : mean) share /= static_cast<double>(end - first);
  return mean;
}

void draw_one(Drawing& drawing, const TensorHistory& tensor, const Exponents& range, Point corner) {
  const double row = (picture_height - picture_top - picture_bottom) / (range.high - range.low);
  const auto y = [&](double exponent) {
    return corner.y + picture_height - picture_bottom - (exponent - range.low) * row;
  };
  const double right = corner.x + picture_width;
  drawing.text({corner.x, corner.y + 13}, shortened(tensor.name, 42), tensor.not_finite > 0 ? Ink::second : Ink::text);
  const std::size_t looks = tensor.looks.size();
  const std::size_t each = std::max<std::size_t>(1, (looks + most_picture_columns - 1) / most_picture_columns);
  const std::size_t columns = (looks + each - 1) / each;
  const double column = (picture_width - picture_left) / static_cast<double>(columns);
  for (std::size_t i = 0; i < columns; ++i) {
    const std::vector<double> mean = mean_of(tensor.looks, i * each, std::min(looks, (i + 1) * each));
    for (std::size_t bin = 0; bin < mean.size(); ++bin) {
      if (mean[bin] <= 1e-5) continue;
      // From 5% of the colour for one number in 100,000 to all of it for one in three.
      const double strength = std::clamp(1 + 0.21 * std::log10(3 * mean[bin]), 0.05, 1.0);
      const double exponent = tensor.first_exponent + static_cast<double>(bin);
      drawing.rectangle({corner.x + picture_left + static_cast<double>(i) * column, y(exponent + 1)}, column + 0.3,
                        row + 0.3, Ink::first, strength);
    }
  }
  for (const int exponent : {f16_smallest, f16_beyond}) {
    drawing.segments({{corner.x + picture_left, y(exponent)}, {right, y(exponent)}}, Ink::second, 1);
    drawing.text({corner.x + picture_left - 6, y(exponent) + 4}, fmt::format("2^{}", exponent), Ink::muted,
                 Anchor::end);
  }
  drawing.text({corner.x + picture_left - 6, y(0) + 4}, "1", Ink::muted, Anchor::end);
  drawing.text({corner.x + picture_left, corner.y + picture_height - 5},
               fmt::format("step {:.0f}", tensor.looks.front().step), Ink::muted);
  if (looks > 1) {
    drawing.text({right, corner.y + picture_height - 5}, fmt::format("{:.0f}", tensor.looks.back().step), Ink::muted,
                 Anchor::end);
  }
}

}  // namespace

void Numerics::add(const Record& record) {
  const std::string kind = text(record, "kind");
  if (kind == "tensor") add_tensor(record);
  const bool overflowed = kind == "step" && record.value("overflowed", Record(false)) == true;
  if (overflowed) overflows_.push_back({amount(record, "step"), amount(record, "loss_scale"), "", ""});
  if (kind == "step" && !skipped_before_) skipped_before_ = amount(record, "skipped") - (overflowed ? 1 : 0);
}

void Numerics::add_tensor(const Record& record) {
  const std::string name = text(record, "name");
  TensorHistory& tensor = tensors_[name];
  tensor.name = name;
  tensor.first_exponent = static_cast<int>(std::clamp(amount(record, "first_exponent"), -10000.0, 10000.0));
  tensor.last = record;
  const double elements = std::max(1.0, amount(record, "elements"));
  const double step = amount(record, "step");
  TensorHistory::Look& look = tensor.looks.emplace_back();
  look.step = step;
  for (const Record& bin : inside(record, "exponents")) {
    if (look.shares.size() == most_bins) break;
    look.shares.push_back(bin.is_number() ? bin.get<double>() / elements : 0);
  }
  tensor.most_subnormal = std::max(tensor.most_subnormal, amount(record, "subnormals") / elements);
  if (amount(record, "large") > 0) ++tensor.too_large;
  if (amount(record, "infinities") + amount(record, "nans") <= 0) return;
  ++tensor.not_finite;
  bad_looks_.try_emplace(step, Overflow{step, 0, name, bad_text(record)});
}

std::vector<Overflow> Numerics::overflows() const {
  std::vector<Overflow> result = overflows_;
  for (Overflow& overflow : result) {
    const auto seen = bad_looks_.find(overflow.step);
    if (seen == bad_looks_.end()) continue;
    overflow.culprit = seen->second.culprit;
    overflow.kind = seen->second.kind;
  }
  return result;
}

std::vector<const TensorHistory*> Numerics::tensors() const {
  std::vector<const TensorHistory*> result;
  for (const auto& [name, tensor] : tensors_) result.push_back(&tensor);
  std::ranges::stable_sort(result, std::ranges::greater{}, [](const TensorHistory* tensor) {
    return std::tuple(tensor->not_finite, tensor->too_large, tensor->most_subnormal);
  });
  return result;
}

std::string draw_exponents(const std::vector<const TensorHistory*>& tensors) {
  constexpr std::size_t columns = 3;
  const Exponents range(tensors);
  const std::size_t rows = (tensors.size() + columns - 1) / columns;
  const auto drawing = svg_drawing(static_cast<int>(columns * picture_width + (columns - 1) * picture_gap),
                                   static_cast<int>(static_cast<double>(rows) * (picture_height + picture_gap)));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    draw_one(*drawing, *tensors[i], range,
             {static_cast<double>(i % columns) * (picture_width + picture_gap),
              static_cast<double>(i / columns) * (picture_height + picture_gap)});
  }
  return drawing->file();
}

}  // namespace samples
