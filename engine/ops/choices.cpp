#include "ops/choices.h"

#include "ops/attention/attention_choice.h"
#include "ops/gemm/gemm_choice.h"

namespace halfstep::ops {
namespace {

bool is_attention(std::string_view kind) {
  return kind.starts_with("attention ");
}

}  // namespace

std::vector<plan::Trial> checks(std::string_view kind) {
  return is_attention(kind) ? attention_checks(kind) : gemm_checks(kind);
}

plan::Target with_candidate(plan::Target target, std::string_view kind, std::string_view name) {
  (is_attention(kind) ? target.attention_kernel : target.gemm_kernels) = name;
  return target;
}

}  // namespace halfstep::ops
