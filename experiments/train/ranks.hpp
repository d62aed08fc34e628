#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autograd/index.hpp"
#include "experiments/program/failure.hpp"

namespace heed {

/// Memory that is sent to a rank, or received from it.
struct Sent {
  Index rank;
  std::span<std::byte const> bytes;
};
struct Received {
  Index rank;
  std::span<std::byte> bytes;
};

/// The processes that train one run together (mpirun -n N heed run FILE): rank 0 … size − 1. This class is a single process; MpiRanks
/// (ranks.cpp) is one of several. All ranks call the same functions in the same order. Functions throw Error if other ranks cannot be
/// reached.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual Index rank() const { return 0; }
  virtual Index size() const { return 1; }
  bool first() const { return rank() == 0; }
  bool several() const { return size() > 1; }

  /// Sends and receives messages, also those of a rank to itself, and returns when all are over. What one rank sends to another is received
  /// in the same order and sizes.
  virtual void exchange(std::vector<Sent> const& sent, std::vector<Received> const& received);
  /// Ends the processes of all other ranks, and this one.
  virtual void end_all(Exit) {}

  /// The numbers of every rank, by rank; each rank gives equally many.
  std::vector<std::vector<double>> gathered(std::vector<double> const& own);
  /// The text of every rank, by rank.
  std::vector<std::string> gathered_texts(std::string const& own);
  /// Waits until all ranks have called it.
  void barrier() { gathered({0.0}); }
};

/// The ranks of this process: itself alone, except inside with_ranks().
Ranks& ranks();

/// How many processes mpirun or srun has started together, and this one's rank, from the environment alone. Size 0: started by neither.
struct Started {
  Index size = 0, rank = 0;
};
Started started();

/// Calls f, which trains a run, with ranks() set to the processes that were started together. If there are several, an exception, also that
/// of a program that was built without MPI, is printed in one line on standard error and ends all of them.
Exit with_ranks(std::function<Exit()> const& f);

/// "Open MPI 4.1.4", or "none: built without".
std::string mpi_version();

}  // namespace heed
