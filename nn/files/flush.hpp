#pragma once

#include <filesystem>

namespace heed {

/// Waits until a file, with all that is known of it, is on the disk. 0, or −1 with errno, as fsync().
int flush(int descriptor);
/// The same for its content alone, with what is needed to read it back: as fdatasync().
int flush_content(int descriptor);
/// Waits until the names in a folder are on the disk, a rename for one; "" is the working one. An errno, 0 if all is well or if the file
/// system cannot do it.
int flush_folder(std::filesystem::path const& folder);

}  // namespace heed
