// Wrong uses of what a day's work needs: weights that bring their model, predictions, other tables, runs that go on, folds, adapters. Each
// is refused by its place.

#include <fmt/ranges.h>

#include "tests/experiments/said.hpp"

TEST_SUITE("finetuning_refusals") {
  using namespace heed;
  using Words = std::vector<std::string>;

  namespace {

  struct Bench {
    Bench() {
      std::string reviews = "label\ttext\n";
      for (int i = 0; i < 40; ++i) reviews += fmt::format("{}\tpart {} is {}\n", i % 2 ? "no" : "yes", i, i % 2 ? "bad" : "good");
      test::put(folder / "reviews.tsv", reviews);
      test::put(folder / "texts.tsv", "words\nso good\n");
      test::put(folder / "empty.tsv", "text\n");
      test::put(folder / "bad_label.tsv", "label\ttext\nmaybe\tso good\n");
      test::put(folder / "no_label.tsv", "text\nso good\n");
      test::put(folder / "broken.jsonl", "{\"text\": \n");
      test::put(folder / "a_text.txt", "so good");
      test::put(folder / "bare.yaml", "data: {kind: copy, length: 2, vocabulary: 4}\ninit: {from: nowhere}\n");
      run = test::trained(folder, "reviews",
                          "data: {kind: examples, training: reviews.tsv, validation: 0.2, header: true, tokenizer: words}\n"
                          "model: {kind: gpt, layers: 1, heads: 2, width: 8, context: 12, head: classification}\n" +
                              training)
                .string();
      copy = test::trained(folder, "copy",
                           "data: {kind: copy, length: 2, vocabulary: 4, validation: 2}\n"
                           "model: {kind: gpt, layers: 1, heads: 2, width: 8, context: 6}\n" +
                               training)
                 .string();
    }
    std::string at(std::string const& file) const { return (folder / file).string(); }
    /// `heed run` of a file with these keys in place of the run's.
    Words command(Words const& more) const {
      return test::joined({"run", at("reviews.yaml"), "--output", folder.path().string(), "--quiet", "name=next"}, more);
    }
    std::string const training = "train: {steps: 4, batch: 4, evaluate: {every: 4}}\n";
    test::Folder folder;
    std::string run, copy;
  };

  }  // namespace

  TEST_CASE("32 wrong uses, each with what is wrong and where") {
    Bench const b;
    struct Wrong {
      Words arguments;
      int code;
      Words says;
    };
    auto const run = [&](Words const& keys) { return b.command(keys); };
    std::vector<Wrong> const all{
        // the model from weights
        {{"check", b.at("bare.yaml"), "--output", b.folder.path().string()},
         2,
         {"bare.yaml:2:14: init.from", "'model.kind' is missing", "nowhere"}},
        {run({"init.from=reviews", "model.widht=16"}), 2, {"argument 'model.widht=16'", "did you mean 'width'"}},
        {run({"init.from=reviews", "model.width=16"}), 3, {"reviews/checkpoint.safetensors", "the model's is"}},
        {run({"init.from=reviews.tsv"}), 3, {"reviews.tsv"}},
        // predict
        {{"predict", b.run}, 2, {"FILE"}},
        {{"predict", b.run, b.at("nowhere.tsv")}, 3, {"nowhere.tsv"}},
        {{"predict", "nothing", b.at("reviews.tsv"), "--output", b.folder.path().string()}, 2, {"nothing", "there is no such run"}},
        {{"predict", b.run, b.at("texts.tsv")}, 2, {"data.text: there is no column 'text'", "words"}},
        {{"predict", b.run, b.at("empty.tsv")}, 3, {"empty.tsv:1: ", "no rows"}},
        {{"predict", b.run, b.at("broken.jsonl")}, 3, {"broken.jsonl:1"}},
        {{"predict", b.run, b.at("a_text.txt")}, 2, {"data.format", "a_text.txt"}},
        {{"predict", b.copy, b.at("reviews.tsv")}, 2, {"copy", "kind examples"}},
        {{"predict", b.run, b.at("reviews.tsv"), "--save", b.at("answers.xls")}, 2, {"--save", ".jsonl or .csv"}},
        {{"predict", b.run, b.at("reviews.tsv"), "--save", b.at("no/such/folder/a.csv")}, 1, {"no/such/folder"}},
        {{"predict", b.run, b.at("reviews.tsv"), "--batch", "0"}, 2, {"--batch"}},
        // evaluate --table
        {{"evaluate", b.run, "--table", b.at("no_label.tsv")}, 2, {"data.label: there is no column 'label'"}},
        {{"evaluate", b.run, "--table", b.at("bad_label.tsv")}, 3, {"bad_label.tsv:2: ", "maybe", "no, yes"}},
        {{"evaluate", b.run, "--table", b.at("reviews.tsv"), "--split", "test"}, 2, {"--split"}},
        {{"evaluate", b.run, "--table", b.at("reviews.tsv"), "--text", b.at("a_text.txt")}, 2, {"--table"}},
        {{"evaluate", b.copy, "--table", b.at("reviews.tsv")}, 2, {"copy", "kind examples"}},
        // a run goes on
        {run({"train.continue=nowhere", "train.steps=8"}), 3, {"nowhere"}},
        {run({"train.continue=reviews"}), 2, {"train.steps", "has made 4 updates already"}},
        {run({"train.continue=reviews", "train.steps=8", "model.width=16"}), 2, {"model.width", "init.from begins anew"}},
        {run({"train.continue=reviews", "train.steps=8", "seed=2"}), 2, {"seed", "reviews"}},
        {run({"train.continue=reviews", "train.steps=8", "train.batch=8"}), 2, {"train.batch"}},
        {run({"train.continue=reviews", "train.steps=8", "train.optimizer=sgd"}), 2, {"train.optimizer"}},
        {run({"train.schedule=extend"}), 2, {"train.schedule", "train.continue"}},
        // folds and weights
        {run({"data.folds=5"}), 2, {"data.validation", "one of the folds"}},
        {run({"data.validation=null", "data.folds=5"}), 2, {"data.folds: needs fold"}},
        {run({"data.validation=null", "data.folds=5", "data.fold=5"}), 2, {"data.fold: there are 5 folds"}},
        {run({"data.validation=reviews.tsv", "data.split=stratified"}), 2, {"data.split", "nothing to split"}},
        {run({"data.class_weights=balansed"}), 2, {"data.class_weights", "did you mean 'balanced'"}},
        {run({"data.class_weights={maybe: 2}"}), 2, {"data.class_weights.maybe", "no, yes"}},
        {run({"data.class_weights={yes: 0}"}), 2, {"data.class_weights.yes"}},
        // adapters
        {run({"train.adapters={rank: 0}"}), 2, {"train.adapters.rank"}},
        {run({"train.adapters={rank: 2, on: [qurey]}"}), 2, {"train.adapters.on", "qurey", "query"}},
        {run({"train.adapters=some"}), 2, {"train.adapters", "none"}},
        // one sentence's picture
        {{"inspect", b.run, "--text", "so good", "--head", "0.1"}, 2, {"--head", "--picture"}},
        {{"inspect", b.run, "--text", "so good", "--picture", b.at("p.png"), "--head", "0.7"}, 2, {"--head", "there are 2"}},
        {{"inspect", b.run, "--text", "so good", "--picture", b.at("p.png"), "--head", "first"}, 2, {"--head", "0.3"}},
        {{"inspect", b.run, "--text", "so good", "--picture", b.at("p.gif")}, 2, {"--picture", ".html"}},
        // optimizers and schedules
        {run({"train.optimizer={kind: muon, momentum: 1}"}), 2, {"train.optimizer.momentum"}},
        {run({"train.optimizer={kind: muon, betas: [0.9]}"}), 2, {"train.optimizer", "betas"}},
        {run({"train.schedule={kind: wsd, decay: 2}"}), 2, {"train.schedule.decay"}},
    };
    CHECK(all.size() >= 32);
    for (Wrong const& wrong : all) {
      CAPTURE(fmt::format("{}", fmt::join(wrong.arguments, " ")));
      test::refuses(wrong.arguments, wrong.code, wrong.says);
    }
  }
}
