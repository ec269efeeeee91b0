#pragma once

#include <halfstep/halfstep.h>

#include <memory>
#include <string>

namespace samples {

/// The processes that mpirun started, this one among them; one rank where it was not mpirun, or Halfstep was built
/// without MPI. The first call joins them.
std::shared_ptr<halfstep::Exchange> ranks();

/// Whether this is rank 0, which prints and saves. Does not join.
bool is_first_rank();

/// Whether any rank was interrupted by a signal. Every rank calls it, and gets the same answer.
bool any_interrupted();

/// Where there are other ranks: ends them all with a message and an exit code.
void abort_ranks(const std::string& message, int exit_code);
/// To be called at the end of a program, when no trainer is left.
void leave_ranks();

}  // namespace samples
