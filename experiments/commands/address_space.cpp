// Whether there is address space to start in, asked before anything else. With too little (ulimit -v) OpenBLAS, which takes its memory as
// soon as it is loaded, tries for ever, and what static objects allocate ends the program without a word.
// Linux alone lets a program begin so early, and Apple's system keeps no such limit.

#if defined(__linux__)

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "experiments/commands/command_line.hpp"

namespace heed {

namespace {

/// Threads that OpenBLAS starts: one a core, if not told otherwise.
long library_threads(char** environment) {
  cpu_set_t cores;
  long count = ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  for (; *environment != nullptr; ++environment) {
    for (char const* name : {"OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS="}) {
      if (std::strncmp(*environment, name, std::strlen(name)) != 0) continue;
      if (long const asked = std::atol(*environment + std::strlen(name)); asked > 0) count = std::min(count, asked);
    }
  }
  return count;
}

void write_to(int descriptor, std::string const& text) {
  if (::write(descriptor, text.data(), text.size()) < 0) ::_exit(1);
}

[[maybe_unused]] void stop_without_room(int count, char** arguments, char** environment) {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  // Measured: 190 MB beyond the libraries themselves with one thread, 131 MB with each further one. Some more, for a few tensors.
  long const threads = library_threads(environment), megabytes = 80 + 132 * threads;
  auto const bytes = static_cast<std::size_t>(megabytes) << 20;
  void* const room = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room != MAP_FAILED) {
    ::munmap(room, bytes);
    return;
  }
  if (std::any_of(arguments, arguments + count, [](char const* argument) { return std::strcmp(argument, "--version") == 0; })) {
    write_to(STDOUT_FILENO, version());
    ::_exit(0);
  }
  write_to(STDERR_FILENO, "heed: too little address space to start in: " + std::to_string(megabytes) +
                              " MB more are needed than its limit leaves (ulimit -v unlimited lifts it" +
                              (threads > 1 ? "; OMP_NUM_THREADS=1 needs less)\n" : ")\n"));
  ::_exit(1);
}

#ifndef HEED_SANITIZED  // sanitizers take terabytes, and are not ready so early
// Called before the constructors of the libraries that the program is linked with.
[[gnu::section(".preinit_array"), gnu::used]] void (*const at_start)(int, char**, char**) = stop_without_room;
#endif

}  // namespace

}  // namespace heed

#endif
