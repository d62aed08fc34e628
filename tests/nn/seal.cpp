#include "nn/files/safetensors.hpp"
#include "nn/files/sha256.hpp"
#include "tests/folder.hpp"

TEST_SUITE("seal") {
  using namespace heed;

  TEST_CASE("every byte of a sealed text is seen to change, in compact and in indented JSON") {
    for (std::string const colon : {":", ": "}) {
      std::string const text = sealed(R"({"a": "\"file_sha256\": \"0\"", "file_sha256")" + colon + "\"" + open_seal() + R"(", "b": 2})");
      CHECK(find_seal(text).has_value());
      CHECK(text.find(open_seal()) == std::string::npos);
      CHECK(seal_holds(text));
      for (std::size_t at = 0; at < text.size(); ++at) {
        auto const changed = test::flipped(text, at);
        CAPTURE(changed);
        CHECK((!seal_holds(changed) || !find_seal(changed)));  // without the name nothing is known, and nothing else has changed
      }
    }
  }

  TEST_CASE("a text without a seal is taken as it is, and cannot be sealed") {
    for (std::string const text : {"", "{}", R"({"file_sha256": "12"})", R"({"file_sha256": 0})"}) {
      CHECK(seal_holds(text));
      CHECK_THROWS_AS(sealed(text), Error);
    }
  }

  TEST_CASE("a sealed file of tensors is read again, sealed anew when it is written anew, and refused when a byte has changed") {
    test::Folder const folder;
    auto const file = folder / "x.safetensors";
    std::map<std::string, std::string> const metadata{{"about", "\"file_sha256\":\"no seal\""}, {std::string(seal_name), open_seal()}};
    save_safetensors(file, {{"x", Tensor::of({1.0, 2.0, 3.0}, {3}, DType::float32)}, {"empty", Tensor::zeros({0}, DType::float32)}},
                     metadata);
    auto const written = test::get(file);
    SafetensorsFile const read(file);
    CHECK_NOTHROW(read.check_seal());
    save_safetensors(file, {{"x", Tensor::of({1.0, 2.0, 4.0}, {3}, DType::float32)}}, read.metadata());
    CHECK_NOTHROW(SafetensorsFile(file).check_seal());
    for (std::size_t at = written.size() - 12; at < written.size(); ++at) {
      test::put(file, test::flipped(written, at));
      CHECK_THROWS_WITH_AS(SafetensorsFile(file).check_seal(), doctest::Contains("is damaged, or another program has changed it"),
                           FileError);
    }
    save_safetensors(file, {{"x", Tensor::zeros({1}, DType::float32)}});
    CHECK_NOTHROW(SafetensorsFile(file).check_seal());  // of another program, perhaps
  }
}
