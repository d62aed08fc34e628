#include "autograd/error.hpp"
#include "experiments/data/open.hpp"
#include "nn/files/safetensors.hpp"
#include "tests/json.hpp"
#include "tests/nn/choice.hpp"
#include "tests/nn/models.hpp"

using namespace heed;

namespace {

std::unique_ptr<Dataset> open(std::filesystem::path const& path, Index vocabulary) {
  auto const choice = test::chosen(choice_of<DataKind>(), "batches", {{"path", path.string()}, {"vocabulary", vocabulary}});
  return open_dataset(choice, {".", ".", 1, true});
}

}  // namespace

TEST_SUITE("batches") {
  using test::random_tokens;

  TEST_CASE_FIXTURE(test::InFolder, "micro-batch k of a step is its rows k·batch …") {
    auto const inputs = random_tokens({3, 4, 5}, 60, "inputs");
    auto targets = random_tokens({3, 4, 5}, 60, "targets");
    targets.mutable_data<std::int64_t>()[7] = -1;
    save_safetensors(folder / "b.safetensors", {{"inputs", inputs}, {"targets", targets}});
    auto const data = open(folder / "b.safetensors", 60);
    CHECK(data->vocabulary() == 60);
    CHECK(data->validation_batches(2, 5) == 0);
    CHECK(!data->facts().tokenizer);
    CHECK(data->describe()["steps"] == 3);
    for (Index batch : {1, 2, 4}) {  // accumulate = 4, 2, 1
      for (Index index = 0; index < 12 / batch; ++index) {
        auto const part = data->training(index, batch, 8);
        CHECK(part["inputs"].shape() == Shape{batch, 5});
        CHECK(part["inputs"].to_vector() == inputs.viewed({12, 5}).rows(index * batch, batch).to_vector());
        CHECK(part["targets"].to_vector() == targets.viewed({12, 5}).rows(index * batch, batch).to_vector());
        CHECK(!part.has("source"));
      }
      CHECK_THROWS_WITH_AS(data->training(12 / batch, batch, 5), doctest::Contains("step 3 does not exist: the file holds 3 steps"),
                           FileError);
    }
    CHECK_THROWS_WITH_AS(data->training(0, 3, 5), doctest::Contains("4 rows, which is not a multiple of train.batch = 3"), FileError);
    CHECK_THROWS_WITH_AS(data->training(0, 2, 4), doctest::Contains("its sequences are 5 tokens long, but the context is 4"), FileError);
  }

  TEST_CASE_FIXTURE(test::InFolder, "sources come along") {
    auto const x = random_tokens({2, 4, 5}, 9), source = random_tokens({2, 4, 3}, 9);
    auto const lengths = Tensor::of(std::vector<Index>{1, 2, 3, 3, 2, 1, 1, 1}, {2, 4});
    save_safetensors(folder / "b.safetensors", {{"inputs", x}, {"targets", x}, {"source", source}, {"source_lengths", lengths}});
    auto const part = open(folder / "b.safetensors", 9)->training(3, 2, 5);
    CHECK(part["source"].to_vector() == source.viewed({8, 3}).rows(6, 2).to_vector());
    CHECK(part["source_lengths"].to_vector() == std::vector<double>{1, 1});
  }

  TEST_CASE_FIXTURE(test::InFolder, "files that are no batches end in one line with file and place") {
    auto const path = folder / "b.safetensors";
    auto const x = random_tokens({2, 4, 3}, 9);
    auto const with = [](Tensor tensor, std::size_t at, Index value) {
      tensor = tensor.clone();
      tensor.mutable_data<std::int64_t>()[at] = value;
      return tensor;
    };
    auto const lengths = Tensor::of(std::vector<Index>(8, 3), {2, 4});
    struct Wrong {
      Tensor inputs, targets, source, lengths;
      std::string message;
    };
    for (Wrong const& each : std::vector<Wrong>{
             {x, {}, {}, {}, "there is no tensor 'targets'"},
             {{}, x, {}, {}, "there is no tensor 'inputs'"},
             {x.to(DType::float32), x, {}, {}, "'inputs' is float32, not int64"},
             {x, x.to(DType::float64), {}, {}, "'targets' is float64, not int64"},
             {x.viewed({8, 3}), x, {}, {}, "'inputs' has shape [8, 3] instead of [steps, rows, T]"},
             {x, x.viewed({2, 3, 4}), {}, {}, "targets [2, 3, 4] and inputs [2, 4, 3] differ in shape"},
             {Tensor({0, 4, 3}, DType::int64), x, {}, {}, "'inputs' has shape [0, 4, 3]"},
             {with(x, 17, 9), x, {}, {}, "'inputs'[1, 1, 2] is 9, outside 0 … 8"},
             {with(x, 0, -1), x, {}, {}, "'inputs'[0, 0, 0] is -1, outside 0 … 8"},
             {x, with(x, 23, -2), {}, {}, "'targets'[1, 3, 2] is -2, outside -1 … 8"},
             {x, with(x, 1, std::numeric_limits<Index>::max()), {}, {}, "'targets'[0, 0, 1] is 9223372036854775807"},
             {x, x, x, {}, "source and source_lengths belong together"},
             {x, x, {}, lengths, "source and source_lengths belong together"},
             {x, x, x, with(lengths, 5, 4), "'source_lengths'[1, 1] is 4, outside 1 … 3"},
             {x, x, x, with(lengths, 5, 0), "'source_lengths'[1, 1] is 0, outside 1 … 3"},
             {x, x, random_tokens({1, 4, 3}, 9), lengths, "source [1, 4, 3] and inputs [2, 4, 3] differ"},
             {x, x, x, x, "'source_lengths' has shape [2, 4, 3] instead of [steps, rows]"},
         }) {
      CAPTURE(each.message);
      Batch const batch{{"inputs", each.inputs}, {"targets", each.targets}, {"source", each.source}, {"source_lengths", each.lengths}};
      save_safetensors(path, batch.parts());
      CHECK_THROWS_WITH_AS(open(path, 9), doctest::Contains((path.string() + ": " + each.message).c_str()), FileError);
    }
    CHECK_THROWS_AS(open(folder / "missing.safetensors", 9), FileError);
    CHECK_THROWS_AS(open(folder.path(), 9), FileError);
    test::put(path, "not a safetensors file");
    CHECK_THROWS_AS(open(path, 9), FileError);
  }
}
