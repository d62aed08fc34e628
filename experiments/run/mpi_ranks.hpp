#pragma once

#include <memory>
#include <string>

#include "experiments/run/ranks.hpp"

namespace heed {

/// Starts MPI, in one process of several. Throws ConfigError if the program was built without, or if MPI counts other processes than those
/// of the environment: it is another MPI than that of mpirun.
std::unique_ptr<Ranks> start_mpi(Started const& expected);

}  // namespace heed
