#pragma once

#include <halfstep/exchange.h>

/// Ranks that MPI starts: `mpirun -n N program`. Programs that include this link halfstep::mpi, which exists where
/// Halfstep was built with MPI: find_package(halfstep COMPONENTS mpi).
namespace halfstep {

/// The exchange of this process with the others that mpirun started it with; no_exchange() for a process that was not
/// started by mpirun. Initialises MPI, unless the application did, and finalises it with the last owner of the
/// exchange. To be called once. Throws Error where MPI fails.
std::shared_ptr<Exchange> mpi_exchange();

}  // namespace halfstep
