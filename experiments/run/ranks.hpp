#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "experiments/run/session.hpp"

namespace heed {

/// Memory in consecutive pieces, one per rank; `bytes`: their sizes.
struct Pieces {
  std::byte* data;
  std::vector<int> bytes;
};

/// A transfer in the background. The memory given to it must stay until it is over.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Whether it is over; never waits. Also advances all other transfers.
  virtual bool over() = 0;
  virtual void wait() = 0;
};

/// The processes that train one run together (mpirun -n N heed run FILE): rank 0 … size − 1. This class is a single process, with nothing
/// to exchange; mpi_ranks.cpp has several. All ranks call the same functions in the same order; only calls of start_exchange() and of
/// start_gather() may be interleaved differently. Functions throw Error if other ranks cannot be reached.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual std::int64_t rank() const { return 0; }
  virtual std::int64_t size() const { return 1; }
  bool first() const { return rank() == 0; }
  bool several() const { return size() > 1; }

  /// Waits until all ranks have called it.
  virtual void barrier() {}
  /// The numbers of every rank, in the order of the ranks; each rank gives equally many.
  virtual std::vector<double> gathered(std::vector<double> const& own) { return own; }
  /// Sends piece r of `from` to rank r, and receives piece r of `into` from it.
  virtual std::unique_ptr<Transfer> start_exchange(Pieces const& from, Pieces const& into);
  /// Sends the bytes at `from` to every rank, and receives piece r of `into` from rank r. As many bytes are sent as this rank's own piece
  /// has.
  virtual std::unique_ptr<Transfer> start_gather(std::byte const* from, Pieces const& into);
  /// Ends the processes of all other ranks, and this one.
  virtual void end_all(Exit) {}
};

/// The ranks of this process: itself alone, except inside with_ranks().
Ranks& ranks();

/// Number of processes that mpirun or srun has started together with this one, and this one's rank, from the environment alone. Size 0:
/// started by neither.
struct Started {
  std::int64_t size = 0, rank = 0;
};
Started started();

/// Calls f, which trains a run, with ranks() set to the processes that were started together. If there are several, an exception is printed
/// in one line on standard error and ends all of them; also the ConfigError of a program that was built without MPI.
Exit with_ranks(std::function<Exit()> const& f);

/// "Open MPI 4.1.4", or "none: built without".
std::string mpi_version();

}  // namespace heed
