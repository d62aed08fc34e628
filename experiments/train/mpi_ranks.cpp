#include <algorithm>

#include <fmt/format.h>

#include "experiments/config/yaml.hpp"
#include "experiments/train/ranks.hpp"

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
