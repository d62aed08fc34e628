// Stratified parts, cross-validation, and weights of classes.

#include "experiments/data/examples/dataset.hpp"
#include "experiments/data/examples/example.hpp"
#include "experiments/metric/statistics.hpp"
#include "nn/model.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/nn/small_model.hpp"

TEST_SUITE("folds") {
  using namespace heed;

  namespace {

  /// So many rows of each label, in groups of two of one text.
  std::vector<SourcedExample> rows(std::vector<int> const& counts) {
    std::vector<SourcedExample> all;
    for (std::size_t label = 0; label < counts.size(); ++label)
      for (int i = 0; i < counts[label]; ++i) {
        auto const text = fmt::format("text {} of {}", i / 2, label);
        all.push_back({{.first = text, .label = std::to_string(label)}, text, text});
      }
    return all;
  }

  std::map<std::string, int> by_label(std::vector<SourcedExample> const& all) {
    std::map<std::string, int> counts;
    for (auto const& each : all) ++counts[each.example.label];
    return counts;
  }

  std::string reviews(int count) {
    std::string text = "label\ttext\n";
    for (int i = 0; i < count; ++i) text += fmt::format("{}\tpart {} is {}\n", i % 4 ? "no" : "yes", i, i % 4 ? "bad" : "good");
    return text;
  }

  std::string const rest =
      "header: true, tokenizer: words}\nmodel: {kind: gpt, layers: 1, heads: 2, width: 8, context: 12, head: classification}\n"
      "train: {steps: 4, batch: 8, evaluate: {every: 4}}\n";

  }  // namespace

  TEST_CASE("a stratified part has each label's share within one row, whatever the counts") {
    for (std::vector<int> const& counts : {std::vector<int>{50, 7, 3, 1}, {1, 1, 1, 1, 1, 1}, {97, 31}, {10}})
      for (double const share : {0.05, 0.2, 0.33, 0.5, 0.9}) {
        auto all = rows(counts);
        auto const total = all.size();
        auto const part = take_stratified(all, share);
        CHECK(part.size() == static_cast<std::size_t>(std::llround(share * static_cast<double>(total))));
        CHECK(part.size() + all.size() == total);
        for (std::size_t label = 0; label < counts.size(); ++label)
          CHECK(std::abs(by_label(part)[std::to_string(label)] - share * counts[label]) < 1);
      }
  }

  TEST_CASE("folds are disjoint, are everything, and are of one size; articles stay together unless stratified") {
    for (bool const stratified : {false, true}) {
      std::multiset<std::string> found, expected;
      std::size_t least = 1000, most = 0;
      for (auto const& each : rows({40, 11})) expected.insert(each.id);
      for (Index fold = 0; fold < 5; ++fold) {
        auto all = rows({40, 11});
        auto const part = take_fold(all, fold, 5, stratified);
        least = std::min(least, part.size()), most = std::max(most, part.size());
        for (auto const& each : part) found.insert(each.id);
        if (stratified) CHECK(std::abs(by_label(part)["1"] - 11 / 5.0) < 1);
        std::set<std::string> left;
        for (auto const& each : all) left.insert(each.article);
        if (!stratified)
          for (auto const& each : part) CHECK(!left.contains(each.article));
      }
      CHECK(found == expected);
      CHECK(most - least <= (stratified ? 1U : 2U));
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "cross-validation: an ablation over folds says what its intervals mean, with the corrected variance") {
    test::put(folder / "reviews.tsv", reviews(60));
    test::put(folder / "base.yaml", "name: base\ndata: {kind: examples, training: reviews.tsv, folds: 3, fold: 0, " + rest);
    test::put(folder / "cv.yaml", "ablation: cv\nbase: base.yaml\nvary: {model.width: [8, 16], data.fold: [0, 1, 2]}\nseeds: 2\n");
    auto const output = test::run_well({"run", (folder / "cv.yaml").string(), "--output", folder.path().string()}).output;
    auto const summary = test::summary_of(folder / "cv");
    std::vector<double> narrow, wide;
    for (auto const& arm : summary["arms"])
      (arm["name"].get<std::string>().find("16") == std::string::npos ? narrow : wide).push_back(arm["mean"].get<double>());
    REQUIRE((narrow.size() == 3 && wide.size() == 3));
    auto const folds = describe(narrow);
    double const half = 4.302652729749464 * folds.deviation * std::sqrt(1 / 3.0 + 1 / 2.0);
    std::string sentence;
    for (auto const& each : summary["sentences"])
      if (auto const text = each.get<std::string>(); text.find("cross-validation, ") == 0 && sentence.empty()) sentence = text;
    CAPTURE(sentence);
    auto const bracket = sentence.find('[');
    REQUIRE(bracket != std::string::npos);
    CHECK(std::stod(sentence.substr(bracket + 1)) == doctest::Approx(folds.mean - half).epsilon(0.01));
    test::check_holds(output, {"of 3 folds: ", "Nadeau & Bengio 2003", "; minus width=8: "});
    test::check_holds(test::get(folder / "cv/report.html"), {"Nadeau &amp; Bengio 2003"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "weights of classes: the loss is the weighted mean, balanced ones are inverse to the counts") {
    test::put(folder / "reviews.tsv", reviews(80));
    auto const run = [&](std::string const& name, std::string const& weights) {
      return test::trained(folder, name, "data: {kind: examples, training: reviews.tsv, validation: reviews.tsv, " + weights + rest,
                           {"dtype=float64"});
    };
    auto const losses = [](std::filesystem::path const& of) {  // the first batch may be of one class
      double sum = 0;
      for (auto const& row : test::json_rows(of / "metrics.jsonl")) sum += row.value("loss", 0.0);
      return sum;
    };
    auto const plain = run("plain", ""), ones = run("ones", "class_weights: {yes: 1, no: 1.0}, "),
               balanced = run("balanced", "class_weights: balanced, "), by_label = run("by_label", "class_weights: {yes: 6}, "),
               same = run("same", "class_weights: {yes: 3, no: 0.5}, ");
    CHECK(losses(ones) == doctest::Approx(losses(plain)).epsilon(1e-13));
    CHECK(losses(by_label) == doctest::Approx(losses(same)).epsilon(1e-13));  // only proportions matter
    CHECK(losses(by_label) != doctest::Approx(losses(plain)).epsilon(1e-9));
    auto const data = test::summary_of(balanced)["configuration"].get<std::string>();
    CHECK(data.find("class_weights: balanced") != std::string::npos);
    test::check_holds(
        test::run_well({"run", (folder / "by_label.yaml").string(), "--output", folder.path().string(), "dtype=float64"}).output,
        {"finished"});
  }

  TEST_CASE("the weighted loss by hand") {
    struct Fixed : test::SmallModel {
      Fixed() : SmallModel(1, 3) {}
      Tensor x;
      std::vector<double> weights;
      std::vector<Term> terms() const override { return {{.name = "label", .targets = "label", .of_classes = weights}}; }
      Outcome run(Batch const&, Pass const&) const override { return {{{terms()[0], {x}}}}; }
    } model;
    model.x = Tensor::normal({5, 3}, Stream(1, "x"), DType::float64);
    model.weights = {1, 4, 0.5};
    Batch const batch{{"label", Tensor::of(std::vector<Index>{0, 1, 2, 1, -1}, {5})}};
    double sum = 0;
    for (Index row = 0; row < 4; ++row) {
      double z = 0;
      for (Index c = 0; c < 3; ++c) z += std::exp(model.x.at(row * 3 + c));
      Index const target = batch["label"].data<std::int64_t>()[static_cast<std::size_t>(row)];
      sum += model.weights[static_cast<std::size_t>(target)] * (std::log(z) - model.x.at(row * 3 + target));
    }
    CHECK(model.loss(batch, Pass()).item() == doctest::Approx(sum / (1 + 4 + 0.5 + 4)).epsilon(1e-14));
  }
}
