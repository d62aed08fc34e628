#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <streambuf>
#include <string>

namespace heed {

/// Reads from an open descriptor, which stays open. std::filebuf and std::cin may treat a failed read as the end of the file; this throws
/// Error with the system's reason.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor) : descriptor_(descriptor) {}

 protected:
  int_type underflow() override;

 private:
  int descriptor_;
  std::array<char, 65536> bytes_;
};

/// The next line without its end; nothing after the last line. Throws Error if it has more than `max_bytes` bytes (the rest is not read),
/// and what the buffer throws.
std::optional<std::string> next_line(std::streambuf& from, std::size_t max_bytes);

}  // namespace heed
