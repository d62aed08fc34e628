// A table of one's own becomes a classifier by the YAML of experiments/README.

#include "tests/experiments/said.hpp"
#include "tests/json.hpp"

TEST_SUITE("own_table") {
  using namespace heed;

  namespace {

  /// The YAML of the manual.
  std::string configuration() {
    std::string const manual = test::get("experiments/README.md"), begin = "```yaml\n";
    auto const found = manual.find(begin + "name: reviews\n");
    REQUIRE(found != manual.npos);
    auto const first = found + begin.size();
    return manual.substr(first, manual.find("```", first) - first);
  }

  /// Reviews that say what they mean by one word.
  std::string reviews() {
    std::string text;
    char const* const things[]{"film", "plot", "cast", "end", "music"};
    for (int i = 0; i < 200; ++i) {
      bool const good = i * 7 % 3 == 1 || i % 5 == 0;
      text += std::string("the ") + things[i % 5] + " of part " + std::to_string(i) + " is " + (good ? "great" : "awful") + "\t" +
              (good ? "yes" : "no") + "\n";
    }
    return text;
  }

  }  // namespace

  TEST_CASE("two columns and 25 lines of YAML at most: a classifier, its metrics, baselines and a page") {
    std::string const yaml = configuration();
    CHECK(std::ranges::count(yaml, '\n') <= 25);
    test::Folder const folder;
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

  TEST_CASE("a row that is wrong is named by file and line") {
    test::Folder const folder;
    test::put(folder / "reviews.tsv", reviews() + "no label\n");
    test::put(folder / "reviews.yaml", configuration());
    test::refuses({"run", (folder / "reviews.yaml").string(), "--output", (folder / "runs").string()}, 3, {"reviews.tsv:201: "});
  }
}
