#pragma once

#include <halfstep/graph.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/safetensors.h"

/// Tensors as files have them: under the names and in the order of axes that other tools expect.
namespace halfstep::train {

/// "layer1.0.conv1.weight" for "layer1/0/conv1/weight".
std::string stored_name(std::string_view name);
/// What the names of tensors begin with that files have beside a model's: no model's tensor may be stored as that.
inline constexpr std::string_view reserved_prefix = "halfstep.";
/// Throws Error that `who` refuses the tensor `name`, whose name in files is not its alone.
[[noreturn]] void refuse_name(std::string_view who, std::string_view name);

/// The shape of a tensor of `shape` whose axes are stored in the order `stored`.
Shape stored_shape(const Shape& shape, const Axes& stored);

/// Values in the order of `shape`, as the bytes of a stored tensor of F32 or F16.
std::vector<std::byte> encode(DType dtype, const Shape& shape, const Axes& stored, std::span<const float> values);

/// Why a stored tensor is not what encode() could have made of a tensor of `shape`, or BF16 of that shape: "expected
/// ..., got ..."; nothing if it is.
std::optional<std::string> mismatch(const io::StoredTensor& tensor, const Shape& shape, const Axes& stored);

/// The values of a stored tensor that matches, in the order of `shape`.
std::vector<float> decode(const io::StoredTensor& tensor, const Shape& shape, const Axes& stored);

}  // namespace halfstep::train
