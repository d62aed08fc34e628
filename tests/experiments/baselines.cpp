// What rules that read little reach on labelled examples.

#include "experiments/data/examples/baselines.hpp"

#include <cmath>

#include <doctest/doctest.h>

#include "autograd/random.hpp"
#include "experiments/data/examples/files.hpp"
#include "experiments/data/examples/logistic.hpp"
#include "tests/data_folder.hpp"

TEST_SUITE("baselines") {
  using namespace heed;

  namespace {

  double value(std::vector<Baseline> const& all, std::string const& name, std::string const& metric) {
    for (auto const& each : all)
      for (auto const& [key, number] : each.values)
        if (each.name == name && key == metric) return number;
    FAIL("there is no " << metric << " of " << name);
    return 0;
  }

  Example text(std::string first, std::string label) { return {.first = std::move(first), .label = std::move(label)}; }

  }  // namespace

  TEST_CASE("logistic regression: its weights are where the penalised loss has no slope") {
    Stream const draws(1, "test");
    std::vector<SparseRow> rows;
    std::vector<std::int64_t> labels;
    for (std::uint64_t i = 0; i < 60; ++i) {
      rows.push_back({{0, draws.normal(3 * i)}, {static_cast<std::int32_t>(1 + i % 2), draws.normal(3 * i + 1)}});
      labels.push_back(static_cast<std::int64_t>(draws.below(3 * i + 2, 3)));
    }
    auto const model = LogisticRegression::fitted(rows, labels, 3, 3, 0.1);
    auto const again = LogisticRegression::fitted(rows, labels, 3, 3, 0.1);
    CHECK(model.log_probabilities(rows[0]) == again.log_probabilities(rows[0]));
    // Where the loss is least, l2 · w[f, c] = mean over the rows of x_f (1[y = c] − p_c). Differences of weights are those of log odds.
    auto const bias = model.log_probabilities({});
    for (std::int32_t feature = 0; feature < 3; ++feature) {
      auto const with = model.log_probabilities({{feature, 1.0}});
      double right = 0;  // of class 1 against class 0
      double const left = 0.1 * ((with[1] - bias[1]) - (with[0] - bias[0]));
      for (std::size_t i = 0; i < rows.size(); ++i)
        for (auto const& [f, x] : rows[i]) {
          if (f != feature) continue;
          auto const p = model.log_probabilities(rows[i]);
          right += x * ((labels[i] == 1 ? 1 : 0) - std::exp(p[1]) - (labels[i] == 0 ? 1 : 0) + std::exp(p[0])) / 60;
        }
      CHECK(left == doctest::Approx(right).epsilon(1e-3));
    }
    double sum = 0;
    for (double const p : model.log_probabilities(rows[5])) sum += std::exp(p);
    CHECK(sum == doctest::Approx(1).epsilon(1e-12));
  }

  TEST_CASE("words: lower case, apostrophes inside, other characters one by one") {
    CHECK(plain_words("Isn't it, Äh?  x-1") == std::vector<std::string>{"isn't", "it", ",", "Äh", "?", "x", "-", "1"});
    CHECK(plain_words(" ").empty());
  }

  TEST_CASE("classes: the majority is that of the held-out examples; a bag of words finds a word that tells") {
    Examples examples{.training = {}, .held_out = {}, .classes = {"a", "b"}, .files = {}};
    for (int i = 0; i < 40; ++i) {
      auto const number = std::to_string(i);
      examples.training.push_back(text("good " + number, "a")), examples.training.push_back(text("bad " + number, i < 20 ? "b" : "a"));
      examples.held_out.push_back(text("good x" + number, "a")), examples.held_out.push_back(text("bad y" + number, "b"));
    }
    for (int i = 0; i < 60; ++i) examples.training.push_back(text("bad again", "b"));
    auto const all = baselines(examples);
    CHECK(all.size() == 2);
    CHECK(value(all, "majority class", "accuracy") == doctest::Approx(0.5));
    CHECK(value(all, "majority class", "loss") == doctest::Approx(-(std::log(61.0 / 142) + std::log(81.0 / 142)) / 2));
    CHECK(value(all, "bag of words and bigrams", "accuracy") == doctest::Approx(1).epsilon(1e-12));
    CHECK(value(all, "bag of words and bigrams", "loss") < 0.4);
    examples.held_out.clear();
    CHECK(baselines(examples).empty());
  }

  TEST_CASE("pairs: the words that both have count") {
    Examples examples{.training = {}, .held_out = {}, .classes = {"no", "yes"}, .symmetric = true, .files = {}};
    Stream const draws(2, "test");
    for (std::uint64_t i = 0; i < 300; ++i) {
      auto const word = [&](std::uint64_t k) { return "w" + std::to_string(draws.child(i).below(k, 500)); };
      Example pair = text(word(0) + " " + word(1) + " " + word(2), i % 2 == 0 ? "yes" : "no");
      pair.second = i % 2 == 0 ? pair.first : word(3) + " " + word(4) + " " + word(5);
      (i < 200 ? examples.training : examples.held_out).push_back(pair);
    }
    CHECK(bag_of_words(examples).values[0].second > 0.95);
  }

  TEST_CASE("options: the shortest, the longest, the one with the most words in common") {
    Example choice{.first = "the old dog", .options = {"an old cat", "the dog here", "x"}, .label = "1"};
    Examples const examples{.training = {choice}, .held_out = {choice}, .classes = {}, .files = {}};
    auto const all = baselines(examples);
    CHECK(value(all, "most frequent number", "accuracy") == 1);
    CHECK(value(all, "shortest option", "accuracy") == 0);
    CHECK(value(all, "longest option", "accuracy") == 1);
    CHECK(value(all, "option with the most words in common", "accuracy") == 1);
  }

  TEST_CASE("spans: the first sentence with the most words in common, a random stretch, no answer") {
    Example asked{.first = "where did the dog sleep?", .second = "It rained. The dog did sleep here. It rained.", .span = true};
    asked.answers = {{"dog did sleep here", 15}};
    Example none = asked;
    none.answers.clear();
    Examples const examples{.training = {asked}, .held_out = {asked, none}, .classes = {}, .files = {}};
    auto const all = baselines(examples);
    CHECK(value(all, "sentence with the most words in common", "exact") == 0.5);
    CHECK(value(all, "sentence with the most words in common", "f1") == 0.5);
    CHECK(value(all, "no answer", "exact") == 0.5);
    double const random = value(all, "random span", "f1");
    CHECK(random >= 0);
    CHECK(random <= 0.5);
    CHECK(value(baselines(examples), "random span", "f1") == random);
  }

  TEST_CASE("the majority of the data folder's sets is what is told of them, and a bag of words is better") {
    auto const* const folder = test::data_folder("HEED_DATA");
    if (folder == nullptr) return;
    auto const of = [&](std::function<void(FileExamples&)> const& change) {
      FileExamples all;
      change(all);
      return baselines(all.read({".", folder, 1, true}));
    };
    auto const trec = of([](auto& all) {
      all.training = "trec/TREC.train.all", all.validation = "trec/TREC.test.all", all.format = "blank", all.encoding = "latin1";
      all.columns = {"label", "text"};
    });
    CHECK(value(trec, "majority class", "accuracy") == doctest::Approx(0.276).epsilon(1e-3));
    CHECK(value(trec, "bag of words and bigrams", "accuracy") > 0.85);
    auto const rte = of([](auto& all) {
      all.training = "glue-rte/train.tsv", all.validation = "glue-rte/dev.tsv", all.header = true;
      all.text = "{sentence1}", all.second = "{sentence2}";
    });
    CHECK(value(rte, "majority class", "accuracy") == doctest::Approx(0.527).epsilon(1e-3));
  }
}
