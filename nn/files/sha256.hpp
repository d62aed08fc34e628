#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's

namespace heed {

class InputFile;

/// Incremental SHA-256 (FIPS 180-4), by OpenSSL.
class Sha256 {
 public:
  Sha256();
  /// Appends bytes to the message.
  void update(std::span<std::byte const> bytes);
  /// Appends a file's content from `offset` on. Throws FileError if it cannot be read or changes meanwhile.
  void update(InputFile const& file, std::size_t offset = 0);
  /// The digest so far, as 64 lower-case hexadecimal digits. More may be appended afterwards.
  std::string hex() const;

 private:
  struct Deleter {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Deleter> context_;
};

/// The digest of one piece of memory, as 64 hexadecimal digits.
std::string sha256(std::span<std::byte const> bytes);
inline std::string sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

/// The digest of a file's content, as 64 hexadecimal digits. Throws FileError if it cannot be read or changes meanwhile.
std::string sha256_of_file(std::filesystem::path const& path);

/// A sealed file holds, as the value of this name in its JSON, the SHA-256 of all its bytes with zeros in the digest's place. Any changed
/// byte is detected on reading. A file without that name is not sealed and not checked.
inline constexpr std::string_view seal_name = "file_sha256";

/// The placeholder of the digest: 64 zeros.
std::string open_seal();

/// Position of the 64 digits in a JSON text; nothing if there are none.
std::optional<std::size_t> find_seal(std::string_view text);

/// A JSON text with its open seal replaced by its digest. Throws Error if it has no open seal.
std::string sealed(std::string text);

/// Whether a JSON text matches its seal, or has none.
bool seal_holds(std::string const& text);

}  // namespace heed
