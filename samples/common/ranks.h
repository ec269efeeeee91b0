#pragma once

#include <halfstep/halfstep.h>

#include <memory>
#include <optional>
#include <string>

namespace samples {

/// Says, before run_program(), that this program can be one of several ranks.
void expect_ranks();
/// To be called once: joins the processes that mpirun started, this one among them; one rank where it was not mpirun,
/// or Halfstep was built without MPI.
void join_ranks();
/// Throws Error where there are several ranks of a program that does not expect them.
void check_ranks();
/// What join_ranks() has joined; null before.
std::shared_ptr<halfstep::Exchange> joined_ranks();

/// What a flag says: "off", "measured", or a share for each rank, "3:1". Empty where it says something else.
std::optional<halfstep::Balance> balance_of(const std::string& text);

/// Whether this is rank 0, which prints and saves.
bool is_first_rank();

/// What rank 0 says, on every rank; all call it.
bool first_rank_says(bool answer);

/// Whether any rank was interrupted by a signal. Every rank calls it, and gets the same answer.
bool any_interrupted();
/// The signal that any rank was interrupted by, as any_interrupted() found; 0: none.
int stop_signal();
/// Whether this process is alone and was interrupted: several ranks do together what one of them must not stop.
bool alone_interrupted();

/// Where there are other ranks: ends them all with a message and an exit code.
void abort_ranks(const std::string& message, int exit_code);
/// To be called at the end of a program, when no trainer is left.
void leave_ranks();

}  // namespace samples
