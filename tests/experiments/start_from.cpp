// What a run takes from the checkpoint of another, of another task and with other special tokens.

#include "autograd/ops/shape.hpp"
#include "experiments/data/examples/dataset.hpp"
#include "experiments/train/session.hpp"
#include "experiments/train/train.hpp"
#include "experiments/train/weights.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/files/sha256.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/refusal.hpp"

namespace heed {

namespace {

/// Texts of one letter, of the class of that letter.
struct Letters : ExampleSource {
  std::vector<Field> source_fields() override { return {}; }
  Examples read(DataContext const&) override {
    Examples examples;
    examples.classes = {"a", "b"};
    for (int i = 0; i < 16; ++i) {
      std::string const label = i % 2 == 0 ? "a" : "b";
      examples.training.push_back(
          {.first = std::string(static_cast<std::size_t>(2 + i % 3), label[0]), .label = label, .location = "letters"});
    }
    examples.held_out = examples.training;
    return examples;
  }
};

Declared<DataKind> const letters_data{examples_kind<Letters>("test_letters", "texts of one letter")};

}  // namespace

}  // namespace heed

TEST_SUITE("start_from") {
  using namespace heed;

  namespace {

  constexpr Index bytes = 256;

  struct Bench {
    test::Folder folder;

    Bench() {
      std::string text;
      for (int i = 0; i < 600; ++i) text += static_cast<char>('a' + i * i % 7);
      test::put(folder / "text.txt", text);
    }
    LoadedExperiment loaded(std::string const& name, std::string const& yaml, std::vector<std::string> const& more = {}) const {
      test::put(folder / (name + ".yaml"), fmt::format("name: {}\n{}", name, yaml));
      return load_experiment(folder / (name + ".yaml"), more, {.output = folder / "runs", .data = {}, .config_folder = {}});
    }
    void run(std::string const& name, std::string const& yaml, std::vector<std::string> const& more = {}) const {
      auto experiment = loaded(name, yaml, more);
      REQUIRE(train(experiment, true, false) == Exit::done);
    }
  };

  std::string pretraining(std::string const& model) {
    return "data: {kind: text, path: text.txt, tokenizer: byte}\nmodel: {" + model +
           ", layers: 2, heads: 2, width: 8, context: 12}\n"
           "train: {steps: 3, batch: 4, evaluate: {batches: 2}}\n";
  }

  std::string fine_tuning(std::string const& model, std::string const& init) {
    return "data: {kind: test_letters, tokenizer: byte}\nmodel: {" + model + ", layers: 2, heads: 2, width: 8, context: 12}\n" +
           (init.empty() ? "" : "init: {" + init + "}\n") + "train: {steps: 6, batch: 4, checkpoint: {every: 2}, evaluate: {every: 3}}\n";
  }

  std::string const gpt = "kind: gpt", bert = "kind: bert";
  std::string const classifies = ", head: classification";

  /// With a run `first`, a GPT that was trained on the text.
  struct Pretrained : Bench {
    Pretrained() { run("first", pretraining(gpt)); }
  };

  Tensor found(Parameters const& all, std::string const& name) {
    REQUIRE_MESSAGE(all.find(name) != nullptr, name);
    return *all.find(name);
  }
  std::vector<double> values(Parameters const& all, std::string const& name) { return found(all, name).to_vector(); }
  std::vector<double> row(Parameters const& all, std::string const& name, Index i) { return found(all, name).rows(i, 1).to_vector(); }

  }  // namespace

  TEST_CASE_FIXTURE(Pretrained, "a task takes the body: rows of text's tokens, blocks and norms; its head and special tokens are drawn") {
    auto const source = open_run(folder / "runs/first");
    auto const with = loaded("second", fine_tuning(gpt + classifies, "from: first"));
    auto const without = loaded("third", fine_tuning(gpt + classifies, ""));
    Trainer const started(with, true), drawn(without, true);
    for (std::string const name : {"blocks.0.attention.query.weight", "blocks.1.mlp.down.bias", "norm.weight", "position_embedding.weight"})
      CHECK(values(started.parameters(), name) == values(*source.parameters, name));
    CHECK(values(started.parameters(), "heads.classification.weight") == values(drawn.parameters(), "heads.classification.weight"));
    for (Index token = 0; token < bytes + 3; ++token) {
      auto const& from = token < bytes ? *source.parameters : drawn.parameters();
      CHECK(row(started.parameters(), "token_embedding.weight", token) == row(from, "token_embedding.weight", token));
    }
  }

  TEST_CASE_FIXTURE(Pretrained, "k layers: the embeddings and the first k blocks; with all of them the last norm too") {
    auto const source = open_run(folder / "runs/first");
    Trainer const drawn(loaded("drawn", fine_tuning(gpt + classifies, "")), true);
    for (Index layers : {0, 1, 2}) {
      CAPTURE(layers);
      auto const second = loaded("second", fine_tuning(gpt + classifies, fmt::format("from: first, layers: {}", layers)));
      Trainer const started(second, true);
      auto const taken = [&](std::string const& name) { return values(started.parameters(), name) == values(*source.parameters, name); };
      CHECK(taken("position_embedding.weight"));
      CHECK(taken("blocks.0.mlp.up.weight") == (layers > 0));
      CHECK(taken("blocks.1.mlp.up.weight") == (layers > 1));
      CHECK(taken("norm.weight") == (layers > 1));
      if (layers < 2) CHECK(values(started.parameters(), "blocks.1.mlp.up.weight") == values(drawn.parameters(), "blocks.1.mlp.up.weight"));
    }
    auto const three = loaded("second", fine_tuning(gpt + classifies, "from: first, layers: 3"));
    test::check_holds(test::refusal([&] { Trainer const refused(three, true); }),
                      {"second.yaml:4:", "init.layers: 3 are more than the 2 blocks of"});
  }

  TEST_CASE_FIXTURE(Bench, "special tokens that both have go by their names; segments and the head of next sentences") {
    run("first", pretraining(bert + ", head: next_sentence"));
    auto const source = open_run(folder / "runs/first");
    Trainer const started(loaded("second", fine_tuning(bert + classifies, "from: first")), true);
    CHECK(source.model->vocabulary() == bytes + 3);
    CHECK(started.model().vocabulary() == bytes + 2);
    for (Index const token : {Index{97}, bytes, bytes + 1})  // a byte, [CLS], [SEP]
      CHECK(row(started.parameters(), "token_embedding.weight", token) == row(*source.parameters, "token_embedding.weight", token));
    CHECK(values(started.parameters(), "segment_embedding.weight") == values(*source.parameters, "segment_embedding.weight"));
    CHECK(started.parameters().find("heads.next_sentence.weight") == nullptr);
  }

  TEST_CASE_FIXTURE(Pretrained,
                    "a shorter context takes the first positions; a longer one is refused, as other shapes and vocabularies are") {
    auto const source = open_run(folder / "runs/first");
    auto const started = [&](std::vector<std::string> const& more) {
      return Trainer(loaded("second", fine_tuning(gpt + classifies, "from: first"), more), true);
    };
    auto const second = loaded("second", fine_tuning(gpt + classifies, "from: first"), {"model.context=8"});
    Trainer const shorter(second, true);
    CHECK(row(shorter.parameters(), "position_embedding.weight", 7) == row(*source.parameters, "position_embedding.weight", 7));
    test::check_refusals<FileError>([&](std::string const& change) { started({change}); },
                                    {{"model.context=13", "'position_embedding.weight' is [12, 8], the model's is [13, 8]"},
                                     {"model.width=16", "'blocks.0.norm1.weight' is [8], the model's is [16]"},
                                     {"model.layers=3", "'blocks.2.norm1.weight' [8] is missing"},
                                     {"model.layers=1", "'blocks.1.attention.key.bias' [8] is not the model's"},
                                     {"data.tokenizer=char", "has other tokens than the data: its vocabulary has 256 tokens, theirs 3"}});
    CHECK(test::refusal([&] { started({"init.from=firts"}); }).find("firts: no such file") != std::string::npos);
  }

  TEST_CASE_FIXTURE(Pretrained, "the folder of a GPT-2 by transformers gives what the run gives that it was exported from") {
    auto const exported = (folder / "gpt2").string();
    test::run_well({"export", folder / "runs/first", "--format", "huggingface", exported});
    Trainer const of_run(loaded("second", fine_tuning(gpt + classifies, "from: first")), true);
    Trainer const of_folder(loaded("third", fine_tuning(gpt + classifies, "from: " + exported)), true);
    for (auto const& [name, parameter] : of_run.parameters().all()) CHECK(parameter.to_vector() == values(of_folder.parameters(), name));
    CHECK(of_folder.files_read().at("init.from").file.ends_with("model.safetensors"));
  }

  TEST_CASE_FIXTURE(Pretrained,
                    "a table with more rows than the tokenizer has tokens: fine-tuned without them, and they are never sampled") {
    auto const exported = folder / "gpt2";
    test::run_well({"export", folder / "runs/first", "--format", "huggingface", exported});
    Trainer const exact(loaded("second", fine_tuning(gpt + classifies, "from: " + exported.string())), true);

    static constexpr Index rows = bytes + 20;
    NamedTensors tensors;
    {
      SafetensorsFile const file(exported / "model.safetensors");
      for (auto const& name : file.names()) {
        Tensor const tensor = file.tensor(name);
        bool const by_token = name == "transformer.wte.weight" || name == "lm_head.weight";
        // What is behind the tokens would be predicted almost always.
        tensors.emplace_back(
            name, by_token ? concatenate({tensor, Tensor::full({rows - bytes, tensor.size(1)}, 50, tensor.dtype())}, 0) : tensor);
      }
    }
    save_safetensors(exported / "model.safetensors", tensors, {{"format", "pt"}});
    test::change_json(exported / "config.json", [](auto& config) { config["vocab_size"] = rows; });

    Trainer const padded(loaded("third", fine_tuning(gpt + classifies, "from: " + exported.string())), true);
    for (auto const& [name, parameter] : exact.parameters().all()) CHECK(parameter.to_vector() == values(padded.parameters(), name));
    CHECK(padded.start_remark().find("20 rows of token_embedding.weight") != std::string::npos);
    Trainer const masked(loaded("fourth", pretraining(gpt) + "init: {from: " + exported.string() + "}\n"), true);
    CHECK(masked.parameters().find("token_embedding.weight")->size(0) == bytes);
    CHECK(test::run_well({"sample", exported, "--tokens", "200", "--prompt", "a"}).output.size() >= 100);
  }

  TEST_CASE_FIXTURE(Pretrained, "a fine-tuned run names the checkpoint that it came from, by its hash; it goes on exactly after an end") {
    auto const yaml = fine_tuning(gpt + classifies + ", dropout: 0.1", "from: first");
    run("whole", yaml);
    run("halves", yaml, {"train.steps=3"});
    run("halves", yaml);
    auto const file = [&](std::string const& which, std::string const& name) { return test::get(folder / "runs" / which / name); };
    CHECK(file("whole", "summary.json").find(sha256_of_file(folder / "runs/first/checkpoint.safetensors")) != std::string::npos);
    auto const trained = open_run(folder / "runs/whole"), again = open_run(folder / "runs/halves");
    for (auto const& [name, parameter] : trained.parameters->all()) CHECK(parameter.to_vector() == values(*again.parameters, name));
    CHECK(file("whole", "predictions.jsonl") == file("halves", "predictions.jsonl"));
    CHECK(file("whole", "predictions.jsonl").find(R"("label":"b")") != std::string::npos);
  }
}
