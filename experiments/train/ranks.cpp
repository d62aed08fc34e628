#include "experiments/train/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "experiments/config/yaml.hpp"
#include "experiments/program/system.hpp"

#ifdef HEED_MPI
#include <mpi.h>
#endif

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

/// Prints the exception that is being handled, and ends all ranks. An error that all ranks have at once is printed by the first; the others
/// wait so that it can end them.
[[noreturn]] void end_by_failure() {
  if (Index const rank = started().rank; rank > 0) {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    std::fputs(fmt::format("rank {}: ", rank).c_str(), stderr);
  }
  Exit const code = guarded([]() -> Exit { throw; });
  ranks().end_all(code);
  std::_Exit(static_cast<int>(code));
}

#ifdef HEED_MPI

void check(int code, char const* function) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(fmt::format("{}: {}", function, std::string(text, static_cast<std::size_t>(length))));
}

/// Calls f(data, count) for every part of the bytes that MPI, whose counts are ints, can transfer at once.
template <class Bytes, class F>
void for_parts(Bytes bytes, F const& f) {
  constexpr std::size_t max_bytes = std::size_t{1} << 30;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), max_bytes)))
    f(bytes.data(), static_cast<int>(std::min(bytes.size(), max_bytes)));
}

class MpiRanks : public Ranks {
 public:
  explicit MpiRanks(Started const& expected) {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (size_ != expected.size || rank_ != expected.rank)
      throw ConfigError("mpirun", fmt::format("started {} processes, but this program's MPI ({}) sees {}: use the mpirun of that MPI",
                                              expected.size, mpi_version(), size_));
  }
  ~MpiRanks() override { MPI_Finalize(); }

  Index rank() const override { return rank_; }
  Index size() const override { return size_; }
  void exchange(std::vector<Sent> const& sent, std::vector<Received> const& received) override {
    std::vector<MPI_Request> requests;
    for (auto const& [rank, bytes] : received)
      for_parts(bytes, [&, from = static_cast<int>(rank)](std::byte* data, int count) {
        check(MPI_Irecv(data, count, MPI_BYTE, from, 0, MPI_COMM_WORLD, &requests.emplace_back()), "MPI_Irecv");
      });
    for (auto const& [rank, bytes] : sent)
      for_parts(bytes, [&, to = static_cast<int>(rank)](std::byte const* data, int count) {
        check(MPI_Isend(data, count, MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests.emplace_back()), "MPI_Isend");
      });
    check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  }
  void end_all(Exit code) override { MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code)); }

 private:
  int rank_ = 0, size_ = 1;
};

/// Starts MPI in this process, one of several. Throws ConfigError if the program was built without MPI, or if MPI's processes are not those
/// that `expected` says: then mpirun belongs to another MPI. Throws Error if MPI fails.
std::unique_ptr<Ranks> start_mpi(Started const& expected) { return std::make_unique<MpiRanks>(expected); }

#else

std::unique_ptr<Ranks> start_mpi(Started const& expected) {
  throw ConfigError("mpirun",
                    fmt::format("started {} processes for one run, but this program was built without MPI: install libopenmpi-dev "
                                "and build again (./heed build -DHEED_MPI=ON)",
                                expected.size));
}

#endif

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
    end_by_failure();
  }
}

#ifdef HEED_MPI
std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);  // may be called before MPI_Init
  std::string const all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}
#else
std::string mpi_version() { return "none: built without"; }
#endif

}  // namespace heed
