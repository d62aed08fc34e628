// Answers to lines without labels, and evaluations on other tables than those of training.

#include "tests/experiments/said.hpp"
#include "tests/json.hpp"

TEST_SUITE("predict") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  std::string review(int i) { return fmt::format("the {} of part {} is {}", i % 2 ? "film" : "plot", i, i % 3 == 0 ? "great" : "awful"); }

  std::string table(int first, int end, bool labelled, char const* head) {
    std::string text = head;
    for (int i = first; i < end; ++i) text += (labelled ? std::string(i % 3 == 0 ? "yes" : "no") + "\t" : "") + review(i) + "\n";
    return text;
  }

  struct Classifier {
    Classifier() {
      test::put(folder / "reviews.tsv", table(0, 120, true, "label\ttext\n"));
      test::put(folder / "other.tsv", table(200, 260, true, "label\ttext\n"));
      test::put(folder / "new.tsv", table(200, 260, false, "text\n"));
      run = test::trained(folder, "reviews",
                          "data: {kind: examples, training: reviews.tsv, validation: 0.2, header: true, tokenizer: words}\n"
                          "model: {kind: gpt, layers: 1, heads: 2, width: 16, context: 16, head: classification}\n"
                          "train: {steps: 40, batch: 8, optimizer: {kind: adamw, lr: 3.0e-3}, evaluate: {every: 40}}\n");
    }
    std::string at(char const* file) const { return (folder / file).string(); }
    test::Folder folder;
    fs::path run;
  };

  Classifier const& classifier() {
    static Classifier const made;
    return made;
  }

  /// What the program predicts of a file.
  std::vector<test::Json> predicted(fs::path const& run, std::string const& file, std::vector<std::string> const& more = {}) {
    std::vector<test::Json> all;
    for (auto const& line : test::lines_of(test::run_well(test::joined({"predict", run.string(), file}, more)).output))
      if (!line.empty()) all.push_back(test::Json::parse(line));
    return all;
  }

  }  // namespace

  TEST_CASE("predictions are those of the run's own evaluation, in the order of the file") {
    auto const& c = classifier();
    auto const own = test::json_rows(c.run / "predictions.jsonl");
    std::string text = "text\n";
    for (auto const& line : own) text += line["first"].get<std::string>() + "\n";
    test::put(c.folder / "held_out.tsv", text);
    auto const found = predicted(c.run, c.at("held_out.tsv"), {"--batch", "7"});
    REQUIRE(found.size() == own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      CHECK(found[i]["first"] == own[i]["first"]);
      CHECK(found[i]["predicted"] == own[i]["predicted"]);
      CHECK(found[i]["probability"].get<double>() == doctest::Approx(own[i]["probability"].get<double>()).epsilon(1e-5));
      double sum = 0;
      for (auto const& [name, share] : found[i]["probabilities"].items()) sum += share.get<double>();
      CHECK(sum == doctest::Approx(1));
      CHECK(!found[i].contains("label"));
      CHECK(!found[i].contains("right"));
    }
  }

  TEST_CASE("tables and JSON lines, with labels or without, saved as any of them") {
    auto const& c = classifier();
    auto const expected = predicted(c.run, c.at("new.tsv"));
    REQUIRE(expected.size() == 60);
    CHECK(expected[3]["place"].get<std::string>().ends_with("new.tsv:5"));
    std::string json, csv = "id,text\n";
    for (int i = 200; i < 260; ++i) {
      json += test::Json{{"text", review(i)}, {"more", {1, 2}}}.dump() + "\n";
      csv += fmt::format("{},\"{}\"\n", i, review(i));
    }
    test::put(c.folder / "new.jsonl", json), test::put(c.folder / "new.csv", csv);
    for (char const* const file : {"other.tsv", "new.jsonl", "new.csv"}) {
      auto const found = predicted(c.run, c.at(file));
      REQUIRE(found.size() == expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i]["probabilities"] == expected[i]["probabilities"]);
    }
    for (std::string const ending : {"jsonl", "csv"}) {
      auto const file = c.at("answers.") + ending;
      test::check_holds(test::run_well({"predict", c.run.string(), c.at("new.tsv"), "--save", file}).output, {"60 predictions"});
      auto const saved = test::lines_of(test::get(file));
      CHECK(saved.size() == (ending == "csv" ? 61 : 60));
      if (ending == "csv") CHECK(saved.front() == "row,place,predicted,probability,no,yes");
    }
  }

  TEST_CASE("another table has every metric, its classes' counts and the confusion, in a folder of its own") {
    auto const& c = classifier();
    auto const outcome = test::run_well({"evaluate", c.run.string(), "--table", c.at("other.tsv")});
    test::check_holds(outcome.output, {"table-other", "accuracy", "macro_f1", "label", "recall", "precision"});
    auto const folder = c.run / "evaluation-table-other";
    auto const answers = predicted(c.run, c.at("new.tsv"));
    int right = 0;
    for (int i = 0; i < 60; ++i) right += answers[static_cast<std::size_t>(i)]["predicted"] == ((200 + i) % 3 == 0 ? "yes" : "no");
    auto const results = test::json_of(folder / "results.json");
    CHECK(results["metrics"]["accuracy"].get<double>() == doctest::Approx(right / 60.0));
    auto const confusion = test::lines_of(test::get(folder / "confusion.csv"));
    CHECK(confusion.front() == "label,examples,no,yes,recall");
    CHECK(confusion[1].starts_with("no,40,"));
    CHECK(confusion[2].starts_with("yes,20,"));
    CHECK(fs::exists(folder / "confusion.svg"));
    test::check_holds(test::run_well({"evaluate", c.run.string()}).output, {"recall"});
    CHECK(fs::exists(c.run / "evaluation-validation/confusion.csv"));
  }

  TEST_CASE_FIXTURE(test::InFolder, "choices and spans; a table without header lacks the label's column") {
    std::string choices, spans = "q\tp\ta\n", plain;
    for (int i = 0; i < 60; ++i) {
      char const* const word = i % 2 ? "red" : "blue";
      choices += fmt::format("say {0}\t{1}\t{2}\t{3}\n", word, i % 3 ? "red" : "blue", i % 3 ? "blue" : "red",
                             (i % 2 == 1) == (i % 3 != 0) ? 0 : 1);
      spans += fmt::format("what ?\twe said thing{0} now\tthing{0}\n", i);
      plain += fmt::format("say {}\tred\tblue\n", word);
    }
    test::put(folder / "choices.tsv", choices), test::put(folder / "spans.tsv", spans), test::put(folder / "plain.tsv", plain);
    std::vector<std::string> const steps{"train={steps: 2, batch: 8, evaluate: {every: 2}}"};
    auto const chosen =
        test::trained(folder, "chosen",
                      "data: {kind: examples, training: choices.tsv, validation: 0.2, columns: [text, a, b, label], options: "
                      "[\"{a}\", \"{b}\"], tokenizer: words}\n"
                      "model: {kind: gpt, layers: 1, heads: 2, width: 8, context: 16, head: choice}\n",
                      steps);
    auto const found = predicted(chosen, folder / "plain.tsv");
    REQUIRE(found.size() == 60);
    CHECK(found[0]["options"] == test::Json({"red", "blue"}));
    CHECK((found[0]["predicted"] == "0" || found[0]["predicted"] == "1"));
    CHECK(found[0]["probabilities"].size() == 2);
    auto const span = test::trained(folder, "span",
                                    "data: {kind: examples, training: spans.tsv, validation: 0.2, header: true, text: \"{q}\", second: "
                                    "\"{p}\", answer: \"{a}\", tokenizer: words}\n"
                                    "model: {kind: bert, layers: 1, heads: 2, width: 8, context: 16, head: span}\n",
                                    steps);
    test::put(folder / "questions.tsv", "q\tp\nwhat ?\twe said thing3 now\n");
    auto const answers = predicted(span, folder / "questions.tsv");
    REQUIRE(answers.size() == 1);
    CHECK(answers[0].contains("above_no_answer"));
    test::check_holds(test::run_well({"evaluate", span.string(), "--table", (folder / "spans.tsv").string()}).output, {"span_f1"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "SQuAD's questions without answers") {
    auto const file = [](bool answered) {
      std::string questions;
      for (int i = 0; i < 8; ++i)
        questions += fmt::format(R"({}{{"id": "{}", "question": "what"{}}})", i ? ", " : "", i,
                                 answered ? R"(, "answers": [{"text": "b", "answer_start": 2}])" : "");
      return R"({"data": [{"title": "t", "paragraphs": [{"context": "a b c", "qas": [)" + questions + "]}]}, " +
             R"({"title": "u", "paragraphs": [{"context": "a b c", "qas": [{"id": "x", "question": "who", "answers": [{"text": "c", "answer_start": 4}]}]}]}]})";
    };
    test::put(folder / "squad.json", file(true)), test::put(folder / "asked.json", file(false));
    auto const run = test::trained(folder, "squad",
                                   "data: {kind: examples, training: squad.json, validation: squad.json, tokenizer: words}\n"
                                   "model: {kind: bert, layers: 1, heads: 2, width: 8, context: 16, head: span}\n"
                                   "train: {steps: 1, batch: 2, evaluate: {every: 1}}\n");
    CHECK(predicted(run, folder / "asked.json").size() == 9);
  }
}
