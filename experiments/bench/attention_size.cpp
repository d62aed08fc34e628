#include "experiments/bench/attention_size.hpp"

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "experiments/config/config.hpp"

namespace heed {

std::string AttentionSize::text() const { return fmt::format("{}x{}x{}x{}", batch, heads, length, width); }

AttentionSize attention_size_of(std::string const& text, AttentionSize const& otherwise) {
  AttentionSize size = otherwise;
  if (text.empty()) return size;
  std::array<std::int64_t*, 4> const parts{&size.batch, &size.heads, &size.length, &size.width};
  char const* at = text.data();
  char const* const end = at + text.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto const [behind, error] = std::from_chars(at, end, *parts[i]);
    bool const last = i + 1 == parts.size();
    if (error != std::errc() || *parts[i] < 1 || *parts[i] > 1'000'000 || (last ? behind != end : behind == end || *behind != 'x'))
      throw ConfigError("--size", fmt::format("wants sequences x heads x tokens x width of a head, like 12x4x256x64, not '{}'", text));
    at = behind + (last ? 0 : 1);
  }
  return size;
}

}  // namespace heed
