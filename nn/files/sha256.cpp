#include "nn/files/sha256.hpp"

#include <array>
#include <vector>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "autograd/error.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace {

void expect(int status) {
  if (status != 1) throw Error("SHA-256: the cryptographic library refuses it");
}

}  // namespace

void Sha256::Deleter::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  expect(OSSL_LIB_CTX_get0_global_default() != nullptr ? 1 : 0);  // it does not look itself, and crashes where memory was short
  expect(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::update(std::span<std::byte const> bytes) { expect(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size())); }

std::string Sha256::hex() const {
  Sha256 const copy;  // so that more may be appended
  expect(EVP_MD_CTX_copy_ex(copy.context_.get(), context_.get()));
  std::array<unsigned char, 32> digest{};
  expect(EVP_DigestFinal_ex(copy.context_.get(), digest.data(), nullptr));
  std::string digits;
  for (unsigned const byte : digest) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

std::string sha256(std::span<std::byte const> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_of_file(std::filesystem::path const& path) {
  InputFile const file(path);
  Sha256 hash;
  std::vector<std::byte> piece(std::min<std::size_t>(file.size(), 1 << 20));
  for (std::size_t done = 0; done < file.size(); done += piece.size()) {
    piece.resize(std::min(piece.size(), file.size() - done));
    file.read(done, piece);
    hash.update(piece);
  }
  return hash.hex();
}

}  // namespace heed
