#include "nn/files/flush.hpp"

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

}  // namespace heed
