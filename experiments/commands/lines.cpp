#include "experiments/commands/lines.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "autograd/error.hpp"

namespace heed {

DescriptorBuffer::int_type DescriptorBuffer::underflow() {
  ssize_t count = -1;
  do count = ::read(descriptor_, bytes_.data(), bytes_.size());
  while (count < 0 && errno == EINTR);
  if (count < 0) throw Error(fmt::format("cannot be read: {}", std::strerror(errno)));
  setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
  return count == 0 ? traits_type::eof() : traits_type::to_int_type(bytes_.front());
}

std::optional<std::string> next_line(std::streambuf& from, std::size_t max_bytes) {
  using Traits = std::streambuf::traits_type;
  std::string line;
  auto read = from.sbumpc();
  if (Traits::eq_int_type(read, Traits::eof())) return std::nullopt;
  for (; !Traits::eq_int_type(read, Traits::eof()) && Traits::to_char_type(read) != '\n'; read = from.sbumpc()) {
    if (line.size() == max_bytes) throw Error(fmt::format("the line has more than {} bytes", max_bytes));
    line += Traits::to_char_type(read);
  }
  return line;
}

}  // namespace heed
