#include "experiments/run/mpi_ranks.hpp"

#include <fmt/format.h>

#include "experiments/config/yaml.hpp"

#ifdef HEED_MPI
#include <mpi.h>
#endif

namespace heed {

#ifdef HEED_MPI

namespace {

void check(int code, char const* function) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(fmt::format("{}: {}", function, std::string(text, static_cast<std::size_t>(length))));
}

/// The offset of each piece, in bytes.
std::vector<int> begins(Pieces const& pieces) {
  std::vector<int> all;
  int next = 0;
  for (int const bytes : pieces.bytes) {
    all.push_back(next);
    next += bytes;
  }
  return all;
}

/// A request, with the lists that MPI reads until it is over.
class MpiTransfer : public Transfer {
 public:
  MpiTransfer(Pieces from, Pieces into)
      : from_(std::move(from)), into_(std::move(into)), from_begins_(begins(from_)), into_begins_(begins(into_)) {}
  bool over() override {
    int done = 0;
    check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }
  void wait() override { check(MPI_Wait(&request_, MPI_STATUS_IGNORE), "MPI_Wait"); }

  void exchange(MPI_Comm among) {
    check(MPI_Ialltoallv(from_.data, from_.bytes.data(), from_begins_.data(), MPI_BYTE, into_.data, into_.bytes.data(), into_begins_.data(),
                         MPI_BYTE, among, &request_),
          "MPI_Ialltoallv");
  }
  void gather(int rank, MPI_Comm among) {
    check(MPI_Iallgatherv(from_.data, into_.bytes[static_cast<std::size_t>(rank)], MPI_BYTE, into_.data, into_.bytes.data(),
                          into_begins_.data(), MPI_BYTE, among, &request_),
          "MPI_Iallgatherv");
  }

 private:
  Pieces from_, into_;
  std::vector<int> from_begins_, into_begins_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class MpiRanks : public Ranks {
 public:
  explicit MpiRanks(Started const& expected) {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    // Transfers of one kind start in the same order on all ranks, but the order of the two kinds may differ: each kind has a communicator.
    check(MPI_Comm_dup(MPI_COMM_WORLD, &exchanges_), "MPI_Comm_dup");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &gathers_), "MPI_Comm_dup");
    if (size_ != expected.size || rank_ != expected.rank)
      throw ConfigError("mpirun", fmt::format("started {} processes, but this program's MPI ({}) sees {}: use the mpirun of that MPI",
                                              expected.size, mpi_version(), size_));
  }
  ~MpiRanks() override { MPI_Finalize(); }

  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }
  void barrier() override { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }
  std::vector<double> gathered(std::vector<double> const& own) override {
    std::vector<double> all(own.size() * static_cast<std::size_t>(size_));
    int const count = static_cast<int>(own.size());
    check(MPI_Allgather(own.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, MPI_COMM_WORLD), "MPI_Allgather");
    return all;
  }
  std::unique_ptr<Transfer> start_exchange(Pieces const& from, Pieces const& into) override {
    auto transfer = std::make_unique<MpiTransfer>(from, into);
    transfer->exchange(exchanges_);
    return transfer;
  }
  std::unique_ptr<Transfer> start_gather(std::byte const* from, Pieces const& into) override {
    auto transfer = std::make_unique<MpiTransfer>(Pieces{const_cast<std::byte*>(from), {}}, into);
    transfer->gather(rank_, gathers_);
    return transfer;
  }
  void end_all(Exit code) override { MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code)); }

 private:
  int rank_ = 0, size_ = 1;
  MPI_Comm exchanges_ = MPI_COMM_NULL, gathers_ = MPI_COMM_NULL;
};

}  // namespace

std::unique_ptr<Ranks> start_mpi(Started const& expected) { return std::make_unique<MpiRanks>(expected); }

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);  // may be called before MPI_Init
  std::string const all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

#else

std::unique_ptr<Ranks> start_mpi(Started const& expected) {
  throw ConfigError("mpirun",
                    fmt::format("started {} processes for one run, but this program was built without MPI: install libopenmpi-dev "
                                "and build again (./heed build -DHEED_MPI=ON)",
                                expected.size));
}

std::string mpi_version() { return "none: built without"; }

#endif

}  // namespace heed
