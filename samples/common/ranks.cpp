#include "samples/common/ranks.h"

#if defined(HALFSTEP_WITH_MPI)
#include <halfstep/mpi.h>
#endif

#include <string>

namespace samples {
namespace {

std::shared_ptr<halfstep::Exchange>& joined() {
  static std::shared_ptr<halfstep::Exchange> exchange;
  return exchange;
}

}  // namespace

std::shared_ptr<halfstep::Exchange> ranks() {
#if defined(HALFSTEP_WITH_MPI)
  if (!joined()) joined() = halfstep::mpi_exchange();
#else
  if (!joined()) joined() = halfstep::no_exchange();
#endif
  return joined();
}

bool is_first_rank() {
  return !joined() || joined()->rank() == 0;
}

bool any_interrupted() {
  const bool here = halfstep::interrupted();
  if (!joined() || joined()->size() == 1) return here;
  float count = here ? 1.0F : 0.0F;
  joined()->begin_sum({&count, 1}, {});
  joined()->wait();
  return count > 0;
}

void abort_ranks(const std::string& message, int exit_code) {
  if (joined() && joined()->size() > 1) joined()->abort(message, exit_code);
}

void leave_ranks() {
  joined().reset();
}

}  // namespace samples
