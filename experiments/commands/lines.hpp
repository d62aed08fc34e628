#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <streambuf>
#include <string>

namespace heed {

/// What is read from an open descriptor, which stays open. std::filebuf and std::cin may take a read that fails for the end of the file;
/// here it throws Error with the system's reason.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor) : descriptor_(descriptor) {}

 protected:
  int_type underflow() override;

 private:
  int descriptor_;
  std::array<char, 65536> bytes_;
};

/// The next line without its end; nothing when all lines have been read. Throws Error if it has more than `most` bytes, of which no more
/// are read, and what the buffer throws.
std::optional<std::string> next_line(std::streambuf& from, std::size_t most);

}  // namespace heed
