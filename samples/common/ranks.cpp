#include "samples/common/ranks.h"

#if defined(HALFSTEP_WITH_MPI)
#include <halfstep/mpi.h>
#endif

#include <string>

namespace samples {
namespace {

bool expected = false;

std::shared_ptr<halfstep::Exchange>& joined() {
  static std::shared_ptr<halfstep::Exchange> exchange;
  return exchange;
}

}  // namespace

void expect_ranks() {
  expected = true;
}

void join_ranks() {
#if defined(HALFSTEP_WITH_MPI)
  joined() = halfstep::mpi_exchange();
#else
  joined() = halfstep::no_exchange();
#endif
}

void check_ranks() {
  const int size = joined()->size();
  if (expected || size == 1) return;
  halfstep::fail("mpirun", "expected one process of this program, got " + std::to_string(size),
                 "it does not train on several ranks");
}

std::shared_ptr<halfstep::Exchange> joined_ranks() {
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

bool alone_interrupted() {
  return (!joined() || joined()->size() == 1) && halfstep::interrupted();
}

void abort_ranks(const std::string& message, int exit_code) {
  if (joined() && joined()->size() > 1) joined()->abort(message, exit_code);
}

void leave_ranks() {
  joined().reset();
}

}  // namespace samples
