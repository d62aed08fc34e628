// Makes one system call of a program fail: loaded before the C library (LD_PRELOAD), it stands in for the calls below, counts those of one
// kind and gives the k-th an error. HEED_FAULT=CALL:K:ERRNO says which; HEED_FAULT_COUNT names a file that counts for all processes of a
// program together, and afterwards says whether there were so many. Counting begins with main().
//
// For tests/cluster HEED_FINISHED=FILE gets a line for each summary.json that is renamed into place.

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

struct Fault {
  char call[16] = "";
  std::int64_t at = 0;  // 0: count only
  int error = EIO;
  std::atomic<std::int64_t>* count = nullptr;  // null: main() has not begun
};
Fault fault;

/// Whether this call is the one that fails; errno is set then.
bool fails(std::string_view call) {
  if (fault.count == nullptr || call != fault.call) return false;
  if (fault.count->fetch_add(1) + 1 != fault.at) return false;
  errno = fault.error;
  return true;
}

/// The function that is stood in for.
template <class Function>
Function real(char const* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

void begin() {
  char const* const what = std::getenv("HEED_FAULT");
  char const* const file = std::getenv("HEED_FAULT_COUNT");
  if (what == nullptr || file == nullptr) return;
  char error[16] = "";
  long long at = 0;
  if (std::sscanf(what, "%15[^:]:%lld:%15s", fault.call, &at, error) < 2) std::abort();
  fault.at = at;
  for (auto const& [name, number] :
       {std::pair("ENOSPC", ENOSPC), std::pair("ENOMEM", ENOMEM), std::pair("EACCES", EACCES), std::pair("ENOLCK", ENOLCK)})
    if (std::strcmp(error, name) == 0) fault.error = number;
  auto const descriptor = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (descriptor < 0 || ::syscall(SYS_ftruncate, descriptor, sizeof(std::int64_t)) != 0) std::abort();
  auto const memory = ::syscall(SYS_mmap, nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::syscall(SYS_close, descriptor);
  if (memory < 0 && memory > -4096) std::abort();
  fault.count = reinterpret_cast<std::atomic<std::int64_t>*>(memory);  // a forked process goes on counting in it
}

using Main = int (*)(int, char**, char**);
Main program;

int counted(int count, char** arguments, char** environment) {
  begin();
  return program(count, arguments, environment);
}

}  // namespace

// Each calls what it stands in for, unless it is to fail.
#define STAND_IN(kind, result, name, parameters, arguments, failure) \
  extern "C" result name parameters {                                \
    static auto const original = real<result(*) parameters>(#name);  \
    return fails(kind) ? failure : original arguments;               \
  }

STAND_IN("read", ssize_t, read, (int file, void* data, size_t size), (file, data, size), -1)
STAND_IN("read", ssize_t, pread, (int file, void* data, size_t size, off_t at), (file, data, size, at), -1)
STAND_IN("read", ssize_t, pread64, (int file, void* data, size_t size, off64_t at), (file, data, size, at), -1)
STAND_IN("write", ssize_t, write, (int file, void const* data, size_t size), (file, data, size), -1)
STAND_IN("write", ssize_t, writev, (int file, iovec const* data, int count), (file, data, count), -1)
STAND_IN("fsync", int, fsync, (int file), (file), -1)
STAND_IN("fsync", int, fdatasync, (int file), (file), -1)
STAND_IN("unlink", int, unlink, (char const* path), (path), -1)
STAND_IN("unlink", int, unlinkat, (int folder, char const* path, int flags), (folder, path, flags), -1)
STAND_IN("unlink", int, remove, (char const* path), (path), -1)
STAND_IN("mkdir", int, mkdir, (char const* path, mode_t mode), (path, mode), -1)
STAND_IN("ftruncate", int, ftruncate, (int file, off_t size), (file, size), -1)
STAND_IN("ftruncate", int, ftruncate64, (int file, off64_t size), (file, size), -1)
STAND_IN("flock", int, flock, (int file, int operation), (file, operation), -1)
STAND_IN("fork", pid_t, fork, (), (), -1)
STAND_IN("open", FILE*, fopen, (char const* path, char const* mode), (path, mode), nullptr)
STAND_IN("open", FILE*, fopen64, (char const* path, char const* mode), (path, mode), nullptr)
STAND_IN("mmap", void*, mmap, (void* at, size_t size, int protection, int flags, int file, off_t offset),
         (at, size, protection, flags, file, offset), MAP_FAILED)
STAND_IN("mmap", void*, mmap64, (void* at, size_t size, int protection, int flags, int file, off64_t offset),
         (at, size, protection, flags, file, offset), MAP_FAILED)

extern "C" int rename(char const* from, char const* to) {
  static auto const original = real<int (*)(char const*, char const*)>("rename");
  if (fails("rename")) return -1;
  int const result = original(from, to);
  char const* const list = std::getenv("HEED_FINISHED");
  if (result == 0 && list != nullptr && std::string_view(to).ends_with("/summary.json")) {
    char line[4096];
    int const length = std::snprintf(line, sizeof line, "%s\n", to);
    auto const file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, list, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (::syscall(SYS_write, file, line, length) != length) std::abort();
    ::syscall(SYS_close, file);
  }
  return result;
}

// open() has a mode only where a file may be made.
#define STAND_IN_OPEN(name)                                                   \
  extern "C" int name(char const* path, int flags, ...) {                     \
    static auto const original = real<int (*)(char const*, int, ...)>(#name); \
    va_list more;                                                             \
    va_start(more, flags);                                                    \
    auto const mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;      \
    va_end(more);                                                             \
    return fails("open") ? -1 : original(path, flags, mode);                  \
  }

STAND_IN_OPEN(open)
STAND_IN_OPEN(open64)

extern "C" int openat(int folder, char const* path, int flags, ...) {
  static auto const original = real<int (*)(int, char const*, int, ...)>("openat");
  va_list more;
  va_start(more, flags);
  auto const mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return fails("open") ? -1 : original(folder, path, flags, mode);
}

// Not through dlsym, which allocates.
extern "C" void* __libc_malloc(size_t size);
extern "C" void* __libc_calloc(size_t count, size_t size);
extern "C" void* __libc_realloc(void* old, size_t size);
extern "C" void* malloc(size_t size) { return fails("malloc") ? nullptr : __libc_malloc(size); }
extern "C" void* calloc(size_t count, size_t size) { return fails("malloc") ? nullptr : __libc_calloc(count, size); }
extern "C" void* realloc(void* old, size_t size) { return fails("malloc") ? nullptr : __libc_realloc(old, size); }

extern "C" int __libc_start_main(Main main, int count, char** arguments, void (*start)(), void (*end)(), void (*loader)(), void* stack) {
  program = main;
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  return real<Start>("__libc_start_main")(counted, count, arguments, start, end, loader, stack);
}
