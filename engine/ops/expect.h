#pragma once

#include <halfstep/tensor.h>

#include <cstddef>
#include <span>
#include <string_view>

/// Checks of an operator's inputs. Each throws Error "[op] expected ..., got ..." if it fails; `role` names the input:
/// "images".
namespace halfstep::ops {

void expect_count(std::string_view op, std::span<const TensorType> inputs, std::size_t count);
void expect_float(std::string_view op, std::string_view role, const TensorType& type);
/// `form` names the axes: "{n, h, w, c}".
void expect_rank(std::string_view op, std::string_view role, const TensorType& type, std::size_t rank,
                 std::string_view form);
/// Both have the same floating type.
void expect_same_float(std::string_view op, const TensorType& a, const TensorType& b);
/// Both have the same shape.
void expect_same_shape(std::string_view op, const TensorType& a, const TensorType& b);
/// Finite, and positive on every device: some take a subnormal number for 0, and reproducible programs 2^-126 too.
void expect_epsilon(std::string_view op, float epsilon);
/// Logits {n, classes} and labels u32 {n}.
void expect_classification(std::string_view op, std::span<const TensorType> inputs);

}  // namespace halfstep::ops
