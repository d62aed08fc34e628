// What a language model answers to multiple choices that it was never trained on.

#include "experiments/train/zero_shot.hpp"

#include "experiments/data/examples/dataset.hpp"
#include "experiments/train/train.hpp"
#include "tests/experiments/said.hpp"
#include "tests/refusal.hpp"
#include "tests/rooms.hpp"

namespace heed {

namespace {

/// "abab" is continued by "ab", never by "ba".
struct Continuations : ExampleSource {
  Index count = 20;
  bool options = true;
  std::vector<Field> source_fields() override {
    return {field(&count, "count", "examples"), field(&options, "options", "whether they have options")};
  }
  Examples read(DataContext const&) override {
    Examples examples;
    for (Index i = 0; i < count; ++i) {
      Example example{.first = i % 3 == 0 ? "abab" : "cabab", .label = std::to_string(i % 2), .location = "continuations"};
      if (options) example.options = i % 2 == 0 ? std::vector<std::string>{"abab", "baba"} : std::vector<std::string>{"bbaa", "abab"};
      examples.training.push_back(example);
    }
    examples.classes = {"0", "1"};
    examples.held_out = examples.training;
    return examples;
  }
};

Declared<DataKind> const continuations_data{examples_kind<Continuations>("test_continuations", "continuations of abab")};

}  // namespace

}  // namespace heed

TEST_SUITE("zero_shot") {
  using namespace heed;

  namespace {

  LoadedExperiment loaded(test::Folder const& folder, std::string const& file, std::string const& model = "kind: gpt, layers: 1") {
    std::string text;
    for (int i = 0; i < 400; ++i) text += i % 5 == 0 ? "cab" : "ab";
    test::put(folder / "text.txt", text);
    test::put(folder / "run.yaml",
              fmt::format("name: run\ndata: {{kind: text, path: text.txt, tokenizer: byte}}\n"
                          "model: {{{}, width: 16, context: 16}}\n"
                          "init: {{std: 0.3}}\ntrain:\n  steps: 100\n  batch: 8\n  optimizer: {{kind: adamw, lr: 0.01}}\n"
                          "  evaluate: {{zero_shot: [{}]}}\n",
                          model, file));
    return load_experiment(folder / "run.yaml", {}, {.output = folder / "runs", .data = {}, .config_folder = {}});
  }

  }  // namespace

  TEST_CASE_FIXTURE(test::InFolder, "the accuracy of a choice by likelihood is recorded along the training") {
    test::put(folder / "pairs.yaml", "data: {kind: test_continuations, join: ''}\n");  // as the text of the training
    for (std::string const model : {"kind: gpt, layers: 1, heads: 2", "kind: recurrent_lm"}) {
      if (model == "kind: recurrent_lm" && !test::has_room("recurrent")) continue;
      CAPTURE(model);
      auto const experiment = loaded(folder, "pairs.yaml", model);
      Trainer trainer(experiment, true);
      Row row;
      while (!trainer.finished()) trainer.train_step(row);
      trainer.evaluate(row);
      REQUIRE(row.find("validation.zero_shot.pairs") != nullptr);
      CHECK(*row.find("validation.zero_shot.pairs") == 1);
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "a file that describes no choice is refused at its place") {
    auto const refused = [&](std::string const& model, std::string const& content, std::string const& file = "pairs.yaml") {
      test::put(folder / "pairs.yaml", content);
      auto const experiment = loaded(folder, file, "kind: " + model + ", layers: 1, heads: 2");
      return test::refusal([&] { Trainer const trainer(experiment, true); });
    };
    std::string const gpt = "gpt", continuations = "data: {kind: test_continuations}\n";
    test::check_holds(refused(gpt, "data: {kind: text, path: text.txt}\n"), {"pairs.yaml:1:14: data.kind: text are not labelled examples"});
    test::check_holds(refused(gpt, "data: {kind: test_continuations, options: false}\n"), {"have no options to choose from"});
    test::check_holds(refused("bert", continuations), {"train.evaluate.zero_shot: pairs.yaml: the model does not continue texts"});
    test::check_holds(refused(gpt, continuations, "paris.yaml"), {"paris.yaml: no such file"});
  }
}
