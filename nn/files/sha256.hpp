#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

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

}  // namespace heed
