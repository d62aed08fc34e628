#include "nn/files/checkpoint.hpp"

#include "nn/files/safetensors.hpp"
#include "tests/difference.hpp"
#include "tests/folder.hpp"
#include "tests/nn/full_disk.hpp"

using namespace heed;

namespace {

Checkpoint example(Index step, double value = 1) {
  Checkpoint made;
  made.step = step;
  made.parameters = {{"norm.weight", Tensor::full({3}, value, DType::float32)},
                     {"head.weight", Tensor::full({2, 3}, -value, DType::float64)}};
  made.state = {{"adam.step", Tensor::full({}, static_cast<double>(step), DType::int64)},
                {"adam.first", Tensor::full({3}, 0.5, DType::float32)}};
  made.metadata = {{"vocabulary", "2"}, {"tokenizer", "{\"ä\": [1]}"}};
  made.state_metadata = {{"environment", "two threads"}};
  return made;
}

void check_equal(Checkpoint::Tensors const& found, Checkpoint::Tensors const& expected) {
  REQUIRE(found.size() == expected.size());
  std::map<std::string, Tensor> const by_name(found.begin(), found.end());
  for (auto const& each : expected) {
    CAPTURE(each.first);
    REQUIRE(by_name.contains(each.first));
    CHECK(test::same_bits(by_name.at(each.first), each.second));
  }
}

void check_refused(test::Folder const& folder, std::string const& file, std::string const& message) {
  auto const path = (folder / file).string();
  CHECK_THROWS_WITH_AS(load_checkpoint(folder.path()), doctest::Contains(message.c_str()), FileError);
  CHECK_THROWS_WITH_AS(load_checkpoint(folder.path()), doctest::Contains(path.c_str()), FileError);
}

}  // namespace

TEST_SUITE("checkpoint") {
  TEST_CASE_FIXTURE(test::InFolder, "what is saved is loaded") {
    CHECK(!has_checkpoint(folder.path()));
    auto const saved = example(12);
    save_checkpoint(folder.path(), saved);
    CHECK(has_checkpoint(folder.path()));
    CHECK(folder.names() == std::vector<std::string>{"checkpoint.safetensors", "state-12.safetensors"});
    auto const loaded = load_checkpoint(folder.path());
    CHECK(loaded.step == 12);
    check_equal(loaded.parameters, saved.parameters);
    check_equal(loaded.state, saved.state);
    for (auto const& [key, value] : saved.metadata) CHECK(loaded.metadata.at(key) == value);
    for (auto const& [key, value] : saved.state_metadata) CHECK(loaded.state_metadata.at(key) == value);

    auto const model = load_checkpoint(folder.path(), false);
    check_equal(model.parameters, saved.parameters);
    CHECK(model.state.empty());
  }

  TEST_CASE("equal checkpoints are equal files") {
    test::Folder const a, b;
    save_checkpoint(a.path(), example(3, 5));
    save_checkpoint(a.path(), example(4));
    save_checkpoint(b.path(), example(4));
    for (auto const* const name : {"checkpoint.safetensors", "state-4.safetensors"}) CHECK(test::get(a / name) == test::get(b / name));
  }

  TEST_CASE_FIXTURE(test::InFolder, "a new checkpoint replaces the old one and takes away the other states") {
    save_checkpoint(folder.path(), example(1));
    test::put(folder / "state-77.safetensors", "of a process that was killed before it wrote the checkpoint");
    test::put(folder / "state-of-the-art.txt", "not ours");
    save_checkpoint(folder.path(), example(2, 7));
    CHECK(folder.names() == std::vector<std::string>{"checkpoint.safetensors", "state-2.safetensors", "state-of-the-art.txt"});
    CHECK(load_checkpoint(folder.path()).step == 2);
    save_checkpoint(folder.path(), example(2, 9));  // of the same step
    check_equal(load_checkpoint(folder.path()).parameters, example(2, 9).parameters);
  }

  TEST_CASE("parameters are paired with the very state that they were saved with") {
    test::Folder const folder, other;
    save_checkpoint(folder.path(), example(5));
    auto stranger = example(5);
    stranger.state_metadata["environment"] = "three threads";
    save_checkpoint(other.path(), stranger);
    std::string const own = test::get(folder / "state-5.safetensors");
    test::put(folder / "state-5.safetensors", test::get(other / "state-5.safetensors"));
    check_refused(folder, "state-5.safetensors", "is not the state that");
    CHECK_NOTHROW(load_checkpoint(folder.path(), false));  // a model is whole without its state

    test::put(folder / "state-5.safetensors", own);
    CHECK_NOTHROW(load_checkpoint(folder.path()));
    for (std::size_t i = 0; i < own.size(); i += 7) {  // any bit counts
      test::put(folder / "state-5.safetensors", test::flipped(own, i));
      check_refused(folder, "state-5.safetensors", "is not the state that");
    }
    test::put(folder / "state-5.safetensors", own.substr(0, own.size() / 2));
    check_refused(folder, "state-5.safetensors", "is not the state that");
    std::filesystem::remove(folder / "state-5.safetensors");
    check_refused(folder, "state-5.safetensors", "No such file");
    std::filesystem::create_directory(folder / "state-5.safetensors");
    check_refused(folder, "state-5.safetensors", "directory");
  }

  TEST_CASE_FIXTURE(test::InFolder, "files that are no checkpoint") {
    check_refused(folder, "checkpoint.safetensors", "No such file");
    auto const path = folder / "checkpoint.safetensors";
    save_checkpoint(folder.path(), example(5));
    auto const whole = test::get(path);
    for (std::size_t length = 0; length < whole.size(); length += 11) {
      test::put(path, whole.substr(0, length));
      CHECK_THROWS_WITH_AS(load_checkpoint(folder.path()), doctest::Contains(path.c_str()), FileError);
    }
    auto const parameters = example(5).parameters;
    using Metadata = std::map<std::string, std::string>;
    for (auto const& [metadata, message] : std::vector<std::pair<Metadata, std::string>>{
             {{}, "its metadata lack 'step'"},
             {{{"step", ""}}, "the step '' is not a number"},
             {{{"step", "five"}}, "the step 'five' is not a number"},
             {{{"step", "-5"}}, "the step '-5' is not a number"},
             {{{"step", "5.0"}}, "the step '5.0' is not a number"},
             {{{"step", "99999999999999999999"}}, "is not a number of updates"},
             {{{"step", "5"}}, "its metadata lack 'state'"},
             {{{"step", "5"}, {"state", "state-4.safetensors"}}, "names the state 'state-4.safetensors', which is not of step 5"},
             {{{"step", "5"}, {"state", "../state-5.safetensors"}}, "names the state '../state-5.safetensors'"},
             {{{"step", "5"}, {"state", "state-5.safetensors"}}, "its metadata lack 'state_sha256'"},
             {{{"step", "5"}, {"state", "state-5.safetensors"}, {"state_sha256", "0"}}, "is not the state that"},
         }) {
      save_safetensors(path, parameters, metadata);
      check_refused(folder, "checkpoint.safetensors", message);
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "without room the old checkpoint stays") {
    auto big = example(2);
    Tensor const large = Tensor::full({2000}, 1, DType::float32);
    SUBCASE("for the state") { big.state.back().second = large; }
    SUBCASE("for the parameters") { big.parameters.back().second = large; }
    save_checkpoint(folder.path(), example(1));
    {
      test::FullDisk const full(4000);
      CHECK_THROWS_WITH_AS(save_checkpoint(folder.path(), big), doctest::Contains("cannot be written"), Error);
    }
    check_equal(load_checkpoint(folder.path()).parameters, example(1).parameters);
    save_checkpoint(folder.path(), big);
    CHECK(load_checkpoint(folder.path()).step == 2);
    CHECK(folder.names() == std::vector<std::string>{"checkpoint.safetensors", "state-2.safetensors"});
  }
}
