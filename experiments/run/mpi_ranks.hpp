#pragma once

#include <memory>
#include <string>

#include "experiments/run/ranks.hpp"

namespace heed {

/// Starts MPI in this process, one of several. Throws ConfigError if the program was built without MPI, or if MPI's processes are not those
/// that `expected` says: then mpirun belongs to another MPI. Throws Error if MPI fails.
std::unique_ptr<Ranks> start_mpi(Started const& expected);

}  // namespace heed
