#pragma once

#include <halfstep/tensor.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What comparisons with PyTorch share; tests/reference/make_parity.py has the other side.
namespace halfstep::testing {

using Json = nlohmann::json;

/// The file of numbers that PyTorch made.
Json read_parity(const std::string& file);

/// 64 random bits for element `i` of the tensor `name`.
std::uint64_t word(std::string_view name, std::uint64_t i);
/// f32 numbers for each element of a tensor.
std::vector<float> uniform(std::string_view name, const Shape& shape, double low, double high);
/// The norm of the difference between `values`, in PyTorch's order, and the tensor that `digest` describes.
double distance(const std::string& name, std::span<const float> values, const Json& digest);

}  // namespace halfstep::testing
