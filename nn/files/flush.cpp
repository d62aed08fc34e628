#include "nn/files/flush.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace heed {

#if defined(__APPLE__)

/// Apple's fsync() leaves the data in the disk's own cache. Not every file system knows how to empty that.
int flush(int descriptor) { return ::fcntl(descriptor, F_FULLFSYNC) == 0 ? 0 : ::fsync(descriptor); }
int flush_content(int descriptor) { return flush(descriptor); }

#else

int flush(int descriptor) { return ::fsync(descriptor); }
int flush_content(int descriptor) { return ::fdatasync(descriptor); }

#endif

int flush_folder(std::filesystem::path const& folder) {
  char const* const name = folder.empty() ? "." : folder.c_str();
  int descriptor = -1, result = 0;
  do descriptor = ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return errno == EACCES ? 0 : errno;  // a folder that may be written but not listed
  do result = flush(descriptor);
  while (result < 0 && errno == EINTR);
  int const error = result == 0 || errno == EINVAL ? 0 : errno;
  ::close(descriptor);
  return error;
}

}  // namespace heed
