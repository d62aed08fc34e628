#pragma once

namespace heed {

/// In a child after fork(): it gets the signal when its parent ends.
void get_signal_when_parent_ends(int signal);
/// Closes the descriptors first … last that are open.
void close_descriptors(unsigned first, unsigned last = ~0U);

}  // namespace heed
