#include "experiments/train/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "experiments/program/system.hpp"

namespace heed {

void Ranks::exchange(std::vector<Sent> const& sent, std::vector<Received> const& received) {
  for (std::size_t i = 0; i < sent.size(); ++i) std::ranges::copy(sent[i].bytes, received[i].bytes.begin());
}

namespace {

/// Sends `own` to every rank, and receives piece r of `all` from rank r.
template <class Piece>
std::vector<Piece> gathered_into(std::vector<Piece> all, Piece const& own) {
  std::vector<Sent> sent;
  std::vector<Received> received;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    sent.push_back({static_cast<Index>(rank), std::as_bytes(std::span(own))});
    received.push_back({static_cast<Index>(rank), std::as_writable_bytes(std::span(all[rank]))});
  }
  ranks().exchange(sent, received);
  return all;
}

std::unique_ptr<Ranks>& current() {
  static std::unique_ptr<Ranks> now = std::make_unique<Ranks>();
  return now;
}

/// Prints the error that `rethrow` throws, and ends all ranks. An error that all ranks have at once is printed by the first; the others
/// wait so that it can end them.
[[noreturn]] void end_by_failure(std::function<Exit()> const& rethrow) {
  if (Index const rank = started().rank; rank > 0) {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    std::fputs(fmt::format("rank {}: ", rank).c_str(), stderr);
  }
  Exit const code = guarded(rethrow);
  ranks().end_all(code);
  std::_Exit(static_cast<int>(code));
}

}  // namespace

Ranks& ranks() { return *current(); }

std::vector<std::vector<double>> Ranks::gathered(std::vector<double> const& own) {
  return gathered_into(std::vector(static_cast<std::size_t>(size()), std::vector<double>(own.size())), own);
}

std::vector<std::string> Ranks::gathered_texts(std::string const& own) {
  std::vector<std::string> all;
  for (auto const& length : gathered({static_cast<double>(own.size())})) all.emplace_back(static_cast<std::size_t>(length[0]), ' ');
  return gathered_into(std::move(all), own);
}

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
