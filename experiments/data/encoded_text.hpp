#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// The tokens of a text, in memory or in a mapped file. Copies share them.
class EncodedText {
 public:
  EncodedText() = default;
  explicit EncodedText(std::vector<std::int32_t> tokens);

  std::span<std::int32_t const> tokens() const { return tokens_; }
  std::size_t size() const { return tokens_.size(); }
  bool empty() const { return tokens_.empty(); }
  auto begin() const { return tokens_.begin(); }
  auto end() const { return tokens_.end(); }

  /// A file from write() with this key, mapped; nothing if it is missing, damaged or another key's. The file must never be changed in place
  /// (a mapping past its end would kill the process): write() replaces it by rename.
  static std::optional<EncodedText> read(std::filesystem::path const& path, std::string const& key);
  /// Writes the tokens after a header with their number and the SHA-256 of the key and them. Throws Error if the file cannot be written.
  void write(std::filesystem::path const& path, std::string const& key) const;

 private:
  std::shared_ptr<void const> owner_;
  std::span<std::int32_t const> tokens_;
};

/// The tokens from `encode`, cached as tokens/KEY in the cache folder; computed each time if they cannot be cached.
EncodedText kept_tokens(std::string const& key, std::function<std::vector<std::int32_t>()> const& encode);

}  // namespace heed
