#include "nn/files/npz.hpp"

#include "tests/folder.hpp"

TEST_SUITE("npz") {
  using namespace heed;

  TEST_CASE_FIXTURE(test::InFolder, "an .npz is read as it was written, and refused if it is not one") {
    auto const path = folder / "a.npz";
    write_npz(path, {NpyArray::of("x", Tensor::of(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3})),
                     NpyArray::of("n", Tensor::of(std::vector<Index>{-7}, {})), NpyArray::of("s", {"a", "éΣ", ""})});
    auto const arrays = read_npz(path);
    CHECK(arrays.at("x").tensor().to_vector() == std::vector<double>{1, 2, 3, 4, 5, 6});
    CHECK(arrays.at("x").tensor().shape() == Shape{2, 3});
    CHECK(arrays.at("n").tensor().item() == -7);
    CHECK(arrays.at("s").texts() == std::vector<std::string>{"a", "éΣ", ""});
    CHECK_THROWS_AS(arrays.at("s").tensor(), FileError);
    CHECK_THROWS_AS(arrays.at("x").texts(), FileError);
    auto const whole = test::get(path);
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      test::put(path, whole.substr(0, size));
      CHECK_THROWS_AS(read_npz(path), FileError);
    }
    for (std::size_t at = 0; at < whole.size(); at += 3) {  // damage is found, or does not matter; it never crashes
      test::put(path, test::flipped(whole, at));
      try {
        for (auto const& [name, array] : read_npz(path)) name == "s" ? (void)array.texts() : (void)array.tensor();
      } catch (Error const&) {
      }
    }
  }
}
