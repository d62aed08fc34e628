#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <stdlib.h>

#include "autograd/error.hpp"

namespace heed::fuzz {

/// What a target does with an input.
void one_input(std::string_view text);

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
inline std::filesystem::path file_of(char const* name, std::string_view text) {
  auto const path = folder() / name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace heed::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  heed::fuzz::one_input({reinterpret_cast<char const*>(data), size});
  return 0;
}
