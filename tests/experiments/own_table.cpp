// A table of one's own becomes a classifier by the YAML of experiments/data.md.

#include "tests/experiments/said.hpp"
#include "tests/json.hpp"

TEST_SUITE("own_table") {
  using namespace heed;

  namespace {

  /// The YAML of the manual.
  std::string configuration() {
    std::string const manual = test::get("experiments/data.md"), begin = "```yaml\n";
    auto const found = manual.find(begin + "name: reviews\n");
    REQUIRE(found != manual.npos);
    auto const first = found + begin.size();
    return manual.substr(first, manual.find("```", first) - first);
  }

  /// A model of the answers (a) to questions (q) in passages (p).
  std::string spans(std::string const& files, std::string const& model) {
    return "data: {kind: examples, " + files + ", header: true, text: \"{q}\", second: \"{p}\", answer: \"{a}\", tokenizer: words}\n" +
           "model: {kind: bert, " + model + ", head: span}\n" +
           "train: {steps: 60, batch: 16, optimizer: {kind: adamw, lr: 1.0e-2}, evaluate: {every: 60}}\n";
  }

  /// Reviews that say what they mean by one word.
  std::string reviews() {
    std::string text;
    char const* const things[]{"film", "plot", "cast", "end", "music"};
    for (int i = 0; i < 200; ++i) {
      bool const good = i * 7 % 3 == 1 || i % 5 == 0;
      text += fmt::format("the {} of part {} is {}\t{}\n", things[i % 5], i, good ? "great" : "awful", good ? "yes" : "no");
    }
    return text;
  }

  }  // namespace

  TEST_CASE_FIXTURE(test::InFolder, "two columns and 25 lines of YAML at most: a classifier, its metrics, baselines and a page") {
    std::string const yaml = configuration();
    CHECK(std::ranges::count(yaml, '\n') <= 25);
    test::put(folder / "reviews.tsv", reviews());
    test::put(folder / "reviews.yaml", yaml);
    auto const runs = (folder / "runs").string();
    std::vector<std::string> const run{"run", (folder / "reviews.yaml").string(), "--output", runs};
    test::check_holds(test::run_well(run).output, {"accuracy of majority class"});
    auto const summary = test::summary_of(folder / "runs/reviews");
    CHECK(summary["validation.accuracy"].get<double>() > 0.9);
    CHECK(summary["data"]["classes"] == test::Json({"no", "yes"}));
    CHECK(summary["baselines"].size() == 2);
    test::check_holds(test::get(folder / "runs/reviews/report.html"), {"<h3>Errors</h3>"});
    test::check_holds(test::run_well({"evaluate", "reviews", "--output", runs}).output, {"accuracy", "f1", "matthews", "macro_f1"});
    test::run_well(test::joined(run, {"name=words", "data.tokenizer=words", "model={kind: bag_of_words, width: 16}"}));
    CHECK(test::summary_of(folder / "runs/words")["validation.accuracy"].get<double>() > 0.9);
  }

  TEST_CASE_FIXTURE(test::InFolder, "right answers of words that training never had are right, in the passage's own characters") {
    auto const table = [](std::string const& what, int rows) {
      std::string text = "q\tp\ta\n";
      for (int i = 0; i < rows; ++i)
        text +=
            fmt::format("what did {0} say ?\t{0}  said {1}{2}\u00a0{2}, today\t{1}{2}\u00a0{2},\n", i % 2 == 0 ? "ann" : "bob", what, i);
      return text;
    };
    test::put(folder / "training.tsv", table("Thing", 80));
    test::put(folder / "held_out.tsv", table("Other", 40));
    auto const data = spans("training: training.tsv, validation: held_out.tsv", "layers: 1, heads: 2, width: 16, context: 16");
    auto const run = test::trained(folder, "answers", data);
    auto const summary = test::summary_of(run);
    CHECK(summary["validation.span_exact"] == 1);
    CHECK(summary["validation.span_f1"] == 1);
    auto const lines = test::json_rows(run / "predictions.jsonl");
    CHECK(lines.size() == 40);
    for (auto const& line : lines) CHECK(line["predicted"] == line["answers"][0]);
    test::check_holds(test::run_well({"inspect", run.string(), "--text", "what did bob say ?", "--target", "bob said Ünseen today"}).output,
                      {"Ünseen"});
    // Smoothing goes over the passage: its loss is that of a distribution, not of a score of −1e9.
    auto const smooth = test::trained(folder, "smooth", data, {"train.label_smoothing=0.1"});
    for (auto const& row : test::json_rows(smooth / "metrics.jsonl")) CHECK(row.value("loss", 0.0) < 20);
    CHECK(test::summary_of(smooth)["validation.span_exact"] == 1);
  }

  TEST_CASE("a context that cuts answers off: they count as wrong, are counted, and losses without them are not compared unsaid") {
    test::Folder const folder;
    std::string text = "q\tp\ta\n";
    for (int i = 0; i < 40; ++i)
      text += fmt::format("what ?\t{}said word{} now\tword{}\n", i % 2 == 0 ? "" : "a b c d e f g h i j k l ", i, i);
    test::put(folder / "t.tsv", text);
    auto const arm = spans("training: t.tsv, validation: t.tsv", "layers: 1, heads: 1, width: 8, context: 32");
    auto const cut = test::trained(folder, "cut", arm, {"model.context=12"}), whole = test::trained(folder, "whole", arm);
    auto const summary = test::summary_of(cut);
    CHECK(summary["validation.lost_answers"] == 20);
    CHECK(summary["validation.accuracy"].get<double>() <= 0.5);
    CHECK(!test::summary_of(whole).contains("validation.lost_answers"));
    std::string const said = "20 held-out answers are cut off";
    test::check_holds(summary["cut"].get<std::string>(), {said});
    test::run_well({"report", cut.string()});
    test::check_holds(test::get(cut / "report.html"), {said});
    test::check_holds(test::run_well({"evaluate", cut.string()}).output, {"lost_answers"});
    test::check_holds(test::run_well({"compare", cut.string(), whole.string()}).output, {"losses of runs that lose different answers"});
    test::put(folder / "base.yaml", "name: base\n" + arm);
    test::put(folder / "contexts.yaml", "ablation: contexts\nbase: base.yaml\nvary: {model.context: [32, 12]}\nseeds: 2\n");
    auto const output = test::run_well({"run", (folder / "contexts.yaml").string(), "--output", folder.path().string()}).output;
    test::check_holds(output, {"model.context cuts different numbers of held-out answers off (32: 0, 12: 20)"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "a row that is wrong is named by file and line") {
    test::put(folder / "reviews.tsv", reviews() + "no label\n");
    test::put(folder / "reviews.yaml", configuration());
    test::refuses({"run", (folder / "reviews.yaml").string(), "--output", (folder / "runs").string()}, 3, {"reviews.tsv:201: "});
  }
}
