#include "base/processor.h"

namespace halfstep::process {

std::uint32_t vector_registers() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512vl") != 0 ? 32 : 16;
#elif defined(__x86_64__) || defined(_M_X64)
  return 16;
#else
  return 32;
#endif
}

}  // namespace halfstep::process
