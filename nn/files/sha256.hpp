#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's

namespace heed {

/// SHA-256 (FIPS 180-4) of bytes that arrive in pieces, by OpenSSL.
class Sha256 {
 public:
  Sha256();
  /// Appends bytes to the message.
  void update(std::span<std::byte const> bytes);
  /// The digest of everything so far, as 64 lower-case hexadecimal digits. More may be appended afterwards.
  std::string hex() const;

 private:
  struct Deleter {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Deleter> context_;
};

/// The digest of one piece of memory, as 64 hexadecimal digits.
std::string sha256(std::span<std::byte const> bytes);

/// The digest of a file's content, as 64 hexadecimal digits. Throws FileError if it cannot be read or changes meanwhile.
std::string sha256_of_file(std::filesystem::path const& path);

/// A file is sealed if it holds, as the value of this name in its JSON, the SHA-256 of all its bytes with zeros in the digest's place. A
/// byte that changes anywhere is seen by whoever reads the file. A file without that name is not sealed, and nothing is known of it.
inline constexpr std::string_view seal_name = "file_sha256";

/// What stands in the digest's place until it is known: 64 zeros.
std::string open_seal();

/// Where the 64 digits stand in a JSON text; nothing if there are none.
std::optional<std::size_t> find_seal(std::string_view text);

/// The JSON text, which holds an open seal, with its own digest. Throws Error if it holds none.
std::string sealed(std::string text);

/// Whether a JSON text is one that sealed() gave, or is not sealed at all.
bool seal_holds(std::string const& text);

}  // namespace heed
