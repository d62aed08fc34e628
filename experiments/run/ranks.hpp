#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "experiments/run/session.hpp"

namespace heed {

/// Memory in consecutive pieces, one a rank, of so many bytes each.
struct Pieces {
  std::byte* data;
  std::vector<int> bytes;
};

/// An exchange that goes on by itself: the memory given to it must stay.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Whether it is over; never waits. Also moves all others on.
  virtual bool over() = 0;
  virtual void wait() = 0;
};

/// The processes that train one run together (mpirun -n N heed run FILE): rank 0 … size − 1. This one is a process alone, for which nothing
/// is to be exchanged; mpi_ranks.cpp has the others. All ranks call the same functions in the same order; those of start_… have one order
/// each. Throw Error if the others cannot be reached.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual std::int64_t rank() const { return 0; }
  virtual std::int64_t size() const { return 1; }
  bool first() const { return rank() == 0; }
  bool several() const { return size() > 1; }

  /// Waits until all are here.
  virtual void barrier() {}
  /// Every rank's numbers, in the order of the ranks; all give equally many.
  virtual std::vector<double> gathered(std::vector<double> const& own) { return own; }
  /// Piece r of `from` goes to rank r; piece r of `into` comes from it.
  virtual std::unique_ptr<Transfer> start_exchange(Pieces const& from, Pieces const& into);
  /// The bytes at `from` go to every rank; piece r of `into` comes from rank r, and says how many they are.
  virtual std::unique_ptr<Transfer> start_gather(std::byte const* from, Pieces const& into);
  /// Ends the processes of all other ranks, and this one.
  virtual void end_all(Exit) {}
};

/// The ranks of this process: itself alone until start_ranks().
Ranks& ranks();

/// How many processes mpirun or srun has started together with this one, and its number among them: by the environment alone. 0: by
/// neither.
struct Started {
  std::int64_t size = 0, rank = 0;
};
Started started();

/// Calls f, which trains a run, with ranks() as they were started: what it throws ends all of them, in one line on standard error. Throws
/// ConfigError if there are several, but the program was built without MPI.
Exit with_ranks(std::function<Exit()> const& f);

/// "Open MPI 4.1.4", or that this program was built without.
std::string mpi_version();

}  // namespace heed
