#include "experiments/ablation/writer.hpp"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/run/failure.hpp"

namespace heed {

namespace {

constexpr std::chrono::seconds pause{10};

/// The child's whole life. Locks are the parent's, and what goes wrong is told by the last tables, which the parent writes.
[[noreturn]] void live(std::function<void()> const& write) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGINT, SIG_IGN);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  int const nowhere = ::open("/dev/null", O_RDWR);
  for (int const stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
  guarded([&] {
    write();
    return Exit::done;
  });
  ::_exit(0);
}

}  // namespace

void Writer::something_ended() {
  auto const now = std::chrono::steady_clock::now();
  if (now < next_ || (process_ > 0 && ::waitpid(process_, nullptr, WNOHANG) == 0)) return;
  next_ = now + pause;
  std::fflush(nullptr);
  process_ = ::fork();
  if (process_ == 0) live(write_);
}

void Writer::wait() {
  while (process_ > 0 && ::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  process_ = -1;
}

}  // namespace heed
