#include "nn/files/sha256.hpp"

#include "autograd/error.hpp"
#include "tests/folder.hpp"

using namespace heed;

namespace {

std::span<std::byte const> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_SUITE("sha256") {
  TEST_CASE("the standard's examples") {  // FIPS 180-4 and NIST's additional vectors
    CHECK(sha256(bytes("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256(bytes("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(
        sha256(bytes("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu")) ==
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    CHECK(sha256(bytes("\xbd")) == "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b");
    CHECK(sha256(bytes(std::string(1'000'000, 'a'))) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }

  TEST_CASE("padding at every length around a block") {  // zeros: NIST's additional vectors
    CHECK(sha256(bytes(std::string(55, '\0'))) == "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7");
    CHECK(sha256(bytes(std::string(56, '\0'))) == "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb");
    CHECK(sha256(bytes(std::string(57, '\0'))) == "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785");
    CHECK(sha256(bytes(std::string(64, '\0'))) == "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b");
  }

  TEST_CASE("pieces of any size give the digest of the whole, and a digest may be taken on the way") {
    std::string text;
    for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
    for (std::size_t first = 0; first <= 130; ++first) {
      Sha256 hash;
      hash.update(bytes(text).first(first));
      CHECK(hash.hex() == sha256(bytes(text).first(first)));
      for (auto rest = bytes(text).subspan(first); !rest.empty(); rest = rest.subspan(std::min<std::size_t>(rest.size(), 37)))
        hash.update(rest.first(std::min<std::size_t>(rest.size(), 37)));
      CHECK(hash.hex() == sha256(bytes(text)));
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "a file's digest is its content's") {
    test::put(folder / "abc", "abc");
    test::put(folder / "empty", "");
    CHECK(sha256_of_file(folder / "abc") == sha256(bytes("abc")));
    CHECK(sha256_of_file(folder / "empty") == sha256(bytes("")));
    CHECK_THROWS_WITH_AS(sha256_of_file(folder / "no"), ((folder / "no").string() + ": cannot be read: No such file or directory").c_str(),
                         FileError);
  }
}
