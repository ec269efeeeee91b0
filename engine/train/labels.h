#pragma once

#include <halfstep/data.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "step/step_inputs.h"

namespace halfstep::train {

/// Calls `f` with each of the integers among `data`; none where the elements are no integers.
template <typename F>
void for_each_integer(ElementType type, std::span<const std::byte> data, const F& f) {
  const auto all = [&]<Element T>(T) {
    const std::span values(reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T));  // NOLINT: of a vector
    for (const T value : values) f(value);
  };
  if (type == ElementType::u8) all(std::uint8_t{});
  if (type == ElementType::u16) all(std::uint16_t{});
  if (type == ElementType::u32) all(std::uint32_t{});
}

/// The classes that a loss or metric tells apart, and the labels of no class that it allows.
struct Classes {
  std::string judge;  ///< the loss or metric
  std::int64_t count = 0;
  std::uint32_t also_ignored = 0;  ///< beside ignored_label

  bool allow(std::uint32_t label) const;
  /// The largest label of a field that is not ignored, plus one; 0 if there is none. A bound that the field states
  /// is taken for it where that is enough.
  std::int64_t largest_in(const Field& field) const;
};
/// Those of every loss and metric of the labels `input` that `outputs` or states are computed from: a graph may have
/// more than were asked for. Empty where it is read as no labels.
std::vector<Classes> classes_of(const graph::Ir& ir, std::span<const graph::ValueId> outputs, graph::ValueId input);

/// What the rows that a value is a mean over have in common: each loss and metric of classes that it is computed from
/// is of these labels, and ignores the same.
struct Judged {
  graph::ValueId labels = 0;  ///< as many as rows
  std::int64_t rows = 0;
  std::uint32_t also_ignored = 0;  ///< beside ignored_label
  /// Of one of them that has any: see ops::statistics_shape.
  std::optional<graph::ValueId> statistics{};

  /// Whether both are means over the same rows.
  bool has_rows_of(const Judged& other) const {
    return labels == other.labels && rows == other.rows && also_ignored == other.also_ignored;
  }
};
/// nullopt if `value` is computed from no such loss or metric, or from two with other rows.
std::optional<Judged> judged(const graph::Ir& ir, graph::ValueId value);

/// Rows of samples that a loss or metric is a mean over: those whose labels, of the input `field` of SampleInputs,
/// count.
struct JudgedRows {
  std::size_t field = 0;
  ElementType type = ElementType::u32;
  std::uint32_t also_ignored = 0;  ///< beside ignored_label

  /// How many of a batch's labels count.
  std::int64_t count(std::span<const std::byte> labels) const;
};
/// Those of `value`. nullopt where it is not judged(), or its labels are not all of an input's.
std::optional<JudgedRows> judged_rows(const graph::Ir& ir, graph::ValueId value, const step::SampleInputs& inputs);

}  // namespace halfstep::train
