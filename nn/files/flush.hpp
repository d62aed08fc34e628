#pragma once

namespace heed {

/// Waits until a file, with all that is known of it, is on the disk. 0, or −1 with errno, as fsync().
int flush(int descriptor);
/// The same for its content alone, with what is needed to read it back: as fdatasync().
int flush_content(int descriptor);

}  // namespace heed
