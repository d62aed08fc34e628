#include "nn/files/exchange.hpp"

#include <cstdio>

#include <fcntl.h>

namespace heed {

#if defined(__APPLE__)

bool exchange(std::filesystem::path const& a, std::filesystem::path const& b) {
  return ::renamex_np(a.c_str(), b.c_str(), RENAME_SWAP) == 0;
}

#elif defined(RENAME_EXCHANGE)

bool exchange(std::filesystem::path const& a, std::filesystem::path const& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

#else

bool exchange(std::filesystem::path const&, std::filesystem::path const&) { return false; }

#endif

}  // namespace heed
