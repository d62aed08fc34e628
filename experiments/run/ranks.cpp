#include "experiments/run/ranks.hpp"

#include <chrono>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "experiments/config/yaml.hpp"
#include "experiments/run/failure.hpp"
#include "experiments/run/mpi_ranks.hpp"
#include "experiments/run/system.hpp"

namespace heed {

std::unique_ptr<Transfer> Ranks::start_exchange(Pieces const&, Pieces const&) {
  throw Error("one process alone has none to exchange with");
}
std::unique_ptr<Transfer> Ranks::start_gather(std::byte const*, Pieces const&) { throw Error("one process alone has none to gather from"); }

namespace {

std::unique_ptr<Ranks>& current() {
  static std::unique_ptr<Ranks> now = std::make_unique<Ranks>();
  return now;
}

/// Prints the error that `rethrow` throws, and ends all ranks. An error that all ranks have at once is printed by the first; the others
/// wait so that it can end them.
[[noreturn]] void end_by_failure(std::function<Exit()> const& rethrow) {
  if (started().rank > 0) std::this_thread::sleep_for(std::chrono::seconds(3));
  Exit const code = guarded(rethrow);
  ranks().end_all(code);
  std::_Exit(static_cast<int>(code));
}

}  // namespace

Ranks& ranks() { return *current(); }

Started started() {
  // Open MPI's mpirun; MPICH's, and srun --mpi=pmi2; srun --mpi=pmix. A Slurm batch script itself has no rank.
  for (auto const& [size, rank] : {std::pair{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, std::pair{"PMI_SIZE", "PMI_RANK"},
                                   std::pair{"SLURM_STEP_NUM_TASKS", "PMIX_RANK"}}) {
    Started const found{integer_in_environment(size).value_or(-1), integer_in_environment(rank).value_or(-1)};
    if (found.size > 0 && found.rank >= 0) return found;
  }
  return {};
}

Exit with_ranks(std::function<Exit()> const& f) {
  if (started().size <= 1) return f();
  try {
    current() = start_mpi(started());
    Exit const code = f();
    current() = std::make_unique<Ranks>();
    return code;
  } catch (...) {
    end_by_failure([failure = std::current_exception()]() -> Exit { std::rethrow_exception(failure); });
  }
}

}  // namespace heed
