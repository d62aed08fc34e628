#include "experiments/ablation/writer.hpp"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/ablation/child.hpp"
#include "experiments/run/failure.hpp"

namespace heed {

namespace {

constexpr std::chrono::seconds pause{10};

/// The child's whole life. Locks are the parent's, and what goes wrong is told by the last tables, which the parent writes.
[[noreturn]] void live(std::function<void()> const& write) {
  get_signal_when_parent_ends(SIGKILL);
  ::signal(SIGINT, SIG_IGN);
  close_descriptors(STDERR_FILENO + 1);
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
