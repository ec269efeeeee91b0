#include "samples/common/ranks.h"

#if defined(HALFSTEP_WITH_MPI)
#include <halfstep/mpi.h>
#endif

#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace samples {
namespace {

bool expected = false;
int stopped_by = 0;  ///< the signal of another rank, or of this one

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

std::optional<halfstep::Balance> balance_of(const std::string& text) {
  if (text == "off") return halfstep::Balance{};
  if (text == "measured") return halfstep::Balance{.measured = true};
  halfstep::Balance balance;
  std::istringstream shares(text + ":");
  for (std::string share; std::getline(shares, share, ':');) {
    const bool whole = !share.empty() && share.size() < 7 && share.find_first_not_of("0123456789") == std::string::npos;
    if (!whole || std::stod(share) == 0) return std::nullopt;
    balance.shares.push_back(std::stod(share));
  }
  return balance;
}

bool is_first_rank() {
  return !joined() || joined()->rank() == 0;
}

bool first_rank_says(bool answer) {
  if (joined()) joined()->broadcast(std::as_writable_bytes(std::span(&answer, 1)), 0);
  return answer;
}

bool any_interrupted() {
  const bool here = halfstep::interrupted();
  if (!joined() || joined()->size() == 1) return here;
  std::vector<float> signals(static_cast<std::size_t>(joined()->size()));
  if (here) signals[static_cast<std::size_t>(joined()->rank())] = static_cast<float>(halfstep::interrupt_signal());
  joined()->begin_sum(signals, {});
  joined()->wait();
  for (const float signal : signals) {
    if (signal > 0) stopped_by = static_cast<int>(signal);
  }
  return stopped_by > 0;
}

int stop_signal() {
  return stopped_by > 0 ? stopped_by : halfstep::interrupt_signal();
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
