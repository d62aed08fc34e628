#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// B sequences, H heads, T queries and as many keys, d numbers each.
struct AttentionSize {
  std::int64_t batch, heads, length, width;

  std::string text() const;
};

/// Of "12x4x256x64"; of nothing: `otherwise`. Throws ConfigError that names --size.
AttentionSize attention_size_of(std::string const& text, AttentionSize const& otherwise);

}  // namespace heed
