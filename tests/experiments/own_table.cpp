// A table of one's own becomes a classifier by the YAML of experiments/README.

#include <algorithm>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>

#include "tests/json.hpp"
#include "tests/program.hpp"

TEST_SUITE("own_table") {
  using namespace heed;

  namespace {

  /// The YAML of the manual.
  std::string configuration() {
    std::ifstream file("experiments/README.md");
    std::string const manual{std::istreambuf_iterator<char>(file), {}};
    std::string const begin = "```yaml\nname: reviews\n";
    auto const first = manual.find(begin) + std::string("```yaml\n").size(), last = manual.find("```", first);
    REQUIRE(manual.find(begin) != manual.npos);
    return manual.substr(first, last - first);
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
    auto const outcome = test::run_heed({"run", (folder / "reviews.yaml").string(), "--output", runs});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.errors);
    CHECK(outcome.output.find("accuracy of majority class") != std::string::npos);
    auto const summary = test::summary_of(folder / "runs/reviews");
    CHECK(summary["validation.accuracy"].get<double>() > 0.9);
    CHECK(summary["data"]["classes"] == test::Json({"no", "yes"}));
    CHECK(summary["baselines"].size() == 2);
    CHECK(test::get(folder / "runs/reviews/report.html").find("<h3>Errors</h3>") != std::string::npos);
    auto const evaluated = test::run_heed({"evaluate", "reviews", "--output", runs});
    REQUIRE_MESSAGE(evaluated.code == 0, evaluated.errors);
    auto const words = test::run_heed({"run", (folder / "reviews.yaml").string(), "--output", runs, "name=words", "data.tokenizer=words",
                                       "model={kind: bag_of_words, width: 16}"});
    REQUIRE_MESSAGE(words.code == 0, words.errors);
    CHECK(nlohmann::json::parse(test::get(folder / "runs/words/summary.json"))["validation.accuracy"].get<double>() > 0.9);
    for (char const* const metric : {"accuracy", "f1", "matthews", "macro_f1"}) CHECK(evaluated.output.find(metric) != std::string::npos);
  }

  TEST_CASE("a row that is wrong is named by file and line") {
    test::Folder const folder;
    test::put(folder / "reviews.tsv", reviews() + "no label\n");
    test::put(folder / "reviews.yaml", configuration());
    auto const outcome = test::run_heed({"run", (folder / "reviews.yaml").string(), "--output", (folder / "runs").string()});
    CHECK(outcome.code == 3);
    CHECK(outcome.errors.find("reviews.tsv:201: ") != std::string::npos);
  }
}
