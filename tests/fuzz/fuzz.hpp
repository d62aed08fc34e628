#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <stdlib.h>

#include "autograd/error.hpp"

namespace heed::fuzz {

/// Calls a reader; false if it refuses what it is given, by heed's own errors. Any other exception ends the program, which is a finding.
template <class F>
bool reads(F reader) {
  try {
    reader();
    return true;
  } catch (Error const&) {
    return false;
  }
}

/// Ends the program with a finding unless it is so.
inline void must(bool so) {
  if (!so) __builtin_trap();
}

inline std::string_view text_of(std::uint8_t const* data, std::size_t size) { return {reinterpret_cast<char const*>(data), size}; }

/// A folder for readers of files, one a process, gone at its end.
inline std::filesystem::path const& folder() {
  struct Folder {
    std::filesystem::path path;
    Folder() {
      std::string name = std::filesystem::exists("/dev/shm") ? "/dev/shm/heed-fuzz-XXXXXX" : "/tmp/heed-fuzz-XXXXXX";
      path = ::mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static Folder const one;
  return one.path;
}

/// The input as a file of this name in the folder; its path.
inline std::filesystem::path file_of(char const* name, std::uint8_t const* data, std::size_t size) {
  auto const path = folder() / name;
  std::ofstream(path, std::ios::binary) << text_of(data, size);
  return path;
}

}  // namespace heed::fuzz
