#include "nn/files/sha256.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "autograd/error.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace {

void expect(int status) {
  if (status != 1) throw Error("SHA-256: the cryptographic library refuses it");
}

constexpr std::size_t digits = 64;

std::string digest_with_open_seal(std::string text, std::size_t at) {
  text.replace(at, digits, open_seal());
  return sha256(text);
}

}  // namespace

void Sha256::Deleter::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  expect(OSSL_LIB_CTX_get0_global_default() != nullptr ? 1 : 0);  // it does not look itself, and crashes where memory was short
  expect(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::update(std::span<std::byte const> bytes) { expect(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size())); }

void Sha256::update(InputFile const& file, std::size_t offset) {
  std::vector<std::byte> piece;
  for (; offset < file.size(); offset += piece.size()) {
    piece.resize(std::min<std::size_t>(file.size() - offset, 1 << 20));
    file.read(offset, piece);
    update(piece);
  }
}

std::string Sha256::hex() const {
  Sha256 const copy;  // so that more may be appended
  expect(EVP_MD_CTX_copy_ex(copy.context_.get(), context_.get()));
  std::array<unsigned char, 32> digest{};
  expect(EVP_DigestFinal_ex(copy.context_.get(), digest.data(), nullptr));
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string sha256(std::span<std::byte const> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_of_file(std::filesystem::path const& path) {
  Sha256 hash;
  hash.update(InputFile(path));
  return hash.hex();
}

std::string open_seal() { return std::string(digits, '0'); }

std::optional<std::size_t> find_seal(std::string_view text) {
  for (char const* const colon : {":\"", ": \""}) {  // of compact and of indented JSON; a quote inside a text has a backslash before it
    std::string const name = fmt::format("\"{}\"{}", seal_name, colon);
    auto const found = text.rfind(name);
    if (found == text.npos || text.size() < found + name.size() + digits + 1) continue;
    auto const at = found + name.size();
    if (text.substr(at, digits).find_first_not_of("0123456789abcdef") == text.npos && text[at + digits] == '"') return at;
  }
  return std::nullopt;
}

std::string sealed(std::string text) {
  auto const at = find_seal(text);
  if (!at) throw Error(fmt::format("a text without \"{}\" cannot be sealed", seal_name));
  return text.replace(*at, digits, digest_with_open_seal(text, *at));
}

bool seal_holds(std::string const& text) {
  auto const at = find_seal(text);
  return !at || digest_with_open_seal(text, *at) == text.substr(*at, digits);
}

}  // namespace heed
