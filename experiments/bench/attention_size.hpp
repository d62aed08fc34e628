#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// B sequences, H heads, T queries and T keys of width d.
struct AttentionSize {
  std::int64_t batch, heads, length, width;

  std::string text() const;
};

/// Parses "12x4x256x64"; an empty text gives `otherwise`. Throws ConfigError that names --size.
AttentionSize attention_size_of(std::string const& text, AttentionSize const& otherwise);

}  // namespace heed
