#include "ops/choices.h"

#include "ops/attention/attention_choice.h"
#include "ops/elementwise/rounding_choice.h"
#include "ops/gemm/gemm_choice.h"
#include "ops/mlp/mlp_choice.h"

namespace halfstep::ops {
namespace {

bool is_attention(std::string_view kind) {
  return kind.starts_with("attention ");
}

}  // namespace

std::vector<plan::Trial> checks(std::string_view kind) {
  if (kind == rounding_kind) return rounding_checks();
  if (is_mlp(kind)) return mlp_checks(kind);
  return is_attention(kind) ? attention_checks(kind) : gemm_checks(kind);
}

plan::Target with_candidate(plan::Target target, std::string_view kind, std::string_view name) {
  if (kind == rounding_kind) {
    target.float16.rounded_by_driver = name == "driver";
    return target;
  }
  std::string& kernel = is_mlp(kind)         ? target.mlp_kernel
                        : is_attention(kind) ? target.attention_kernel
                                             : target.gemm_kernels;
  kernel = name;
  return target;
}

}  // namespace halfstep::ops
