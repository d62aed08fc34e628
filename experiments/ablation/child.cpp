#include "experiments/ablation/child.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace heed {

#if defined(__linux__)

void get_signal_when_parent_ends(int signal) { ::prctl(PR_SET_PDEATHSIG, signal); }

void close_descriptors(unsigned first, unsigned last) { ::close_range(first, last, 0); }

#else

/// A thread looks ten times a second: the system tells nobody.
void get_signal_when_parent_ends(int signal) {
  std::thread([signal, parent = ::getppid()] {
    while (::getppid() == parent) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(::getpid(), signal);
  }).detach();
}

void close_descriptors(unsigned first, unsigned last) {
  auto const end = static_cast<unsigned>(std::max(::getdtablesize(), 1));
  for (unsigned descriptor = first; descriptor <= last && descriptor < end; ++descriptor) ::close(static_cast<int>(descriptor));
}

#endif

}  // namespace heed
