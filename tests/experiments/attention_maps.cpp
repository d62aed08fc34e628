#include "experiments/metric/probe/attention_maps.hpp"

#include "autograd/graph.hpp"
#include "autograd/ops/shape.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/written.hpp"
#include "tests/nn/models.hpp"
#include "tests/nn/small_model.hpp"
#include "tests/npz.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("attention_maps") {
  using namespace heed;

  namespace {

  /// A decoder of three steps, with cross-attention to four positions and self-attention.
  struct StepByStep : test::SmallModel {
    StepByStep() : SmallModel(3, 3, 3) {}
    Outcome run(Batch const& batch, Pass const& pass) const override {
      Tensor const x = Tensor::zeros({2, 1, 1}, DType::float32);
      for (Index step = 0; step < 3; ++step) {
        auto const attend = [&](char const* name, Index keys, AttentionParts const& parts) {
          Tensor const weights = Tensor::full({2, 1, 1, keys}, static_cast<double>(step + 1), DType::float32);
          pass.watching.observer->attention->add(name, {weights, weights, {.causal = false, .lengths = {}, .offset = step}, x, x, parts});
        };
        attend("cross", 4, {"inputs", "source"});
        attend("self", step + 1, {"inputs", "inputs"});
      }
      CHECK(!recording());
      return {{{Term(), {batch["inputs"]}}}};
    }
  };

  Tensor tokens(std::vector<Index> const& values, Shape const& shape) { return Tensor::of(values, shape); }

  Batch two_rows() {
    return {{"inputs", tokens({1, 4, 5, 1, 4, 0}, {2, 3})},
            {"lengths", tokens({3, 2}, {2})},
            {"source", tokens({5, 3, 4, 2, 4, 2, 0, 0}, {2, 4})},
            {"source_lengths", tokens({4, 2}, {2})}};
  }

  }  // namespace

  TEST_CASE("steps of a decoder are one layer; keys that a step did not have yet have weight 0") {
    auto const maps = record_attention_maps(StepByStep(), two_rows(), {});
    REQUIRE(maps.layers.size() == 2);
    CHECK(maps.layers[0].layer == "cross");
    CHECK(maps.layers[0].of.keys == "source");
    CHECK(maps.layers[0].weights.shape() == Shape{2, 1, 3, 4});
    CHECK(slice(maps.layers[0].weights, 0, 1, 2).to_vector() == std::vector<double>{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3});
    CHECK(maps.layers[1].weights.shape() == Shape{2, 1, 3, 3});
    CHECK(slice(maps.layers[1].weights, 0, 0, 1).to_vector() == std::vector<double>{1, 0, 0, 2, 2, 0, 3, 3, 3});
  }

  TEST_CASE("an axis has the words of its own part, without padding; places of no part have numbers") {
    PartTokenizers const words{word_tokenizer({"a", "dog"}), word_tokenizer({"der", "hund"})};
    auto const maps = record_attention_maps(StepByStep(), two_rows(), words);
    using Labels = std::vector<std::string>;
    CHECK(maps.axis("inputs", 0, 3) == Labels{"<bos>", "a", "dog"});
    CHECK(maps.axis("inputs", 1, 3) == Labels{"<bos>", "a"});
    CHECK(maps.axis("source", 0, 4) == Labels{"hund", "<unk>", "der", "<eos>"});
    CHECK(maps.axis("source", 1, 4) == Labels{"der", "<eos>"});
    CHECK(maps.axis("", 0, 2) == Labels{"0", "1"});
    CHECK(!maps.only_inputs());
    CHECK(record_attention_maps(StepByStep(), two_rows(), {}).axis("source", 1, 4) == Labels{"4", "2"});
  }

  TEST_CASE("arrays of many rows and of one") {
    auto const names = [](std::vector<NpyArray> const& arrays) { return mapped(arrays, &NpyArray::name); };
    auto maps = record_attention_maps(StepByStep(), two_rows(), {});
    CHECK(names(maps.arrays()) == std::vector<std::string>{"inputs.tokens", "inputs.labels", "inputs.lengths", "source.tokens",
                                                           "source.labels", "source.lengths", "layer0.weights", "layer0.of",
                                                           "layer1.weights", "layer1.of"});
    maps.layers.erase(maps.layers.begin());  // self-attention of the inputs alone
    maps.parts.pop_back();
    CHECK(names(maps.arrays()) == std::vector<std::string>{"tokens", "labels", "lengths", "layer0.weights"});
    auto const one = record_attention_maps(StepByStep(), {{"inputs", tokens({1, 4}, {1, 2})}, {"source", tokens({4}, {1, 1})}}, {});
    CHECK(one.parts[0].lengths.empty());
    CHECK(names(one.arrays(false)).size() == 8);
  }

  TEST_CASE_FIXTURE(test::InFolder, "a run's maps hold the first validation rows and their weights") {
    for (std::string const model : {"gpt", "bert"}) {
      auto const loaded =
          test::written("dtype: float64\ndata: {kind: grammar, validation: 12, ngram_sentences: 10, longest: 4}\nmodel: {kind: " + model +
                        ", layers: 2, heads: 3, width: 12, context: 6}\ntrain: {steps: 10, batch: 3}\nprobes: {maps: {examples: 2}}\n");
      Trainer const trainer(loaded, true);
      AttentionMapWriter const maps(loaded.settings.probes.maps, trainer.model(), trainer.data(), folder.path(), 0);
      CHECK((maps.due(500, false) && maps.due(7, true) && !maps.due(7, false)));
      maps.write(500);
      auto const arrays = test::read_npz(folder.path() / "attention" / "step-000500.npz");
      CHECK(arrays.size() == 5);
      test::check_holds(arrays.at("lengths.npy").header, {"(2,)"});
      test::check_holds(arrays.at("tokens.npy").header, {"(2, 6)"});
      test::check_holds(arrays.at("labels.npy").header, {"(12,)"});
      test::check_holds(arrays.at("layer1.weights.npy").header, {"(2, 3, 6, 6)"});
      Batch const batch = trainer.data().validation(0, 2, 6);
      auto const inputs = batch["inputs"].data<std::int64_t>();
      CHECK(std::memcmp(inputs.data(), arrays.at("tokens.npy").data.data(), inputs.size_bytes()) == 0);
      test::RecordedPass const recorded({.weights = true});
      trainer.model().logits(batch, recorded.pass);
      for (std::size_t const layer : {0, 1})
        CHECK(test::doubles(arrays.at(fmt::format("layer{}.weights.npy", layer))) == recorded.records()[layer].weights.to_vector());
      CHECK((arrays.at("labels.npy").data.find("M\0\0\0A\0\0\0S\0\0\0K", 0, 13) != std::string::npos) == (model == "bert"));
    }
  }

  TEST_CASE("maps of an encoder-decoder: tokens of source and target, and for every layer what looks at what" *
            test::needs("translation")) {
    test::Folder const folder;
    auto const loaded = test::written(
        "data: {kind: pairs, task: {kind: digits}, validation: 3}\nmodel: {kind: transformer, layers: 1, heads: 2, width: 8, context: 40}\n"
        "train: {steps: 1, batch: 2}\nprobes: {maps: {examples: 2}}\n");
    Trainer const trainer(loaded, true);
    AttentionMapWriter(loaded.settings.probes.maps, trainer.model(), trainer.data(), folder.path(), 0).write(0);
    auto const arrays = heed::read_npz(folder.path() / "attention" / "step-000000.npz");
    Batch const batch = trainer.data().validation(0, 2, 40);
    for (std::string const part : {"inputs", "source"}) {
      CHECK(arrays.at(part + ".tokens").tensor().to_vector() == batch[part].to_vector());
      auto const lengths = batch[part == "inputs" ? "lengths" : "source_lengths"].data<std::int64_t>();
      bool const padded = std::ranges::any_of(lengths, [&](Index length) { return length < batch[part].size(1); });
      CHECK(arrays.contains(part + ".lengths") == padded);
      auto const labels = arrays.at(part + ".labels").texts();
      CHECK((part == "inputs" ? labels[0] == "<bos>" : heed::at(labels, lengths[0] - 1) == "<eos>"));
    }
    using Labels = std::vector<std::string>;
    CHECK(arrays.at("layer0.of").texts() == Labels{"encoder.blocks.0.attention", "source", "source"});
    CHECK(arrays.at("layer1.of").texts() == Labels{"decoder.blocks.0.attention", "inputs", "inputs"});
    CHECK(arrays.at("layer2.of").texts() == Labels{"decoder.blocks.0.cross_attention", "inputs", "source"});
    CHECK(arrays.at("layer2.weights").tensor().shape() == Shape{2, 2, batch["inputs"].size(1), batch["source"].size(1)});
  }
}
