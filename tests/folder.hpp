#pragma once

#include <stdlib.h>

#include "tests/test.hpp"

namespace heed::test {

/// A new folder for one test, gone with its content at the end.
class Folder {
 public:
  Folder() {
    auto name = (std::filesystem::temp_directory_path() / "heed-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  Folder(Folder const&) = delete;
  Folder& operator=(Folder const&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::filesystem::path const& path() const { return path_; }
  std::filesystem::path operator/(std::string const& name) const { return path_ / name; }
  /// The names of what the folder holds, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (auto const& entry : std::filesystem::directory_iterator(path_)) result.push_back(entry.path().filename().string());
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  std::filesystem::path path_;
};

/// What a test case in a folder of its own has.
struct InFolder {
  Folder const folder;
};

/// Writes a file in place.
inline void put(std::filesystem::path const& path, std::string const& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  REQUIRE(file.flush());
}

/// Bytes with a bit of one of them turned.
inline std::string flipped(std::string bytes, std::size_t at) {
  bytes.at(at) = static_cast<char>(bytes[at] ^ 1);
  return bytes;
}

inline std::vector<std::string> lines_of(std::string const& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> split_words(std::string const& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// A message that does not name the folder of its files.
inline std::string without_folder(std::string message, Folder const& folder) {
  std::string const name = folder.path().string() + "/";
  for (auto at = message.find(name); at != message.npos; at = message.find(name)) message.erase(at, name.size());
  return message;
}

/// The folder that an environment variable names (HEED_DATA, HEED_GOLDEN); null if it is not set or empty.
inline char const* data_folder(char const* variable) {
  char const* const name = std::getenv(variable);
  return name != nullptr && *name != '\0' ? name : nullptr;
}

inline std::string get(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace heed::test
