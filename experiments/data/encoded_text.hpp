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

/// The tokens of a text, in memory or in a file that is mapped. Copies share them.
class EncodedText {
 public:
  EncodedText() = default;
  explicit EncodedText(std::vector<std::int32_t> tokens);

  std::span<std::int32_t const> tokens() const { return tokens_; }
  std::size_t size() const { return tokens_.size(); }
  bool empty() const { return tokens_.empty(); }
  auto begin() const { return tokens_.begin(); }
  auto end() const { return tokens_.end(); }

  /// A file that write() left, mapped; nothing if there is none, or it is damaged. The file must never be changed in place (a mapping would
  /// end the process where it no longer reaches): write() replaces it by rename.
  static std::optional<EncodedText> read(std::filesystem::path const& path);
  /// The tokens behind a header with their number and SHA-256. Throws Error if the file cannot be written.
  void write(std::filesystem::path const& path) const;

 private:
  std::shared_ptr<void const> owner_;
  std::span<std::int32_t const> tokens_;
};

/// What `encode` makes, kept as tokens/KEY in the cache folder and from then on read from there; made each time where nothing can be kept.
EncodedText kept_tokens(std::string const& key, std::function<std::vector<std::int32_t>()> const& encode);

}  // namespace heed
