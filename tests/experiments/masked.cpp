#include "experiments/commands/commands.hpp"
#include "experiments/data/text.hpp"
#include "experiments/data/view.hpp"
#include "tests/difference.hpp"
#include "tests/experiments/runs.hpp"
#include "tests/nn/choice.hpp"

TEST_SUITE("masked") {
  using namespace heed;

  namespace {

  /// Letters at random, so that a random token is seldom the one it replaces by rule.
  std::string letters(std::size_t length) {
    Stream const stream(9, "letters");
    std::string text = "abcdefghijklmnopqrstuvwxyz";
    for (std::size_t i = text.size(); i < length; ++i) text += static_cast<char>('a' + stream.below(i, 26));
    return text;
  }

  std::unique_ptr<Dataset> plain_text(std::uint64_t seed) {
    TextSettings settings;
    settings.validation = 0.2;
    return std::make_unique<TextDataset>(TextFiles{letters(30'000), {0}}, "letters", settings, DataContext{.seed = seed});
  }

  /// Sentences "a b" and "a c b", one per row or packed.
  std::unique_ptr<Dataset> sentences(bool pack = false) {
    test::Folder const folder;
    test::put(folder / "test.yaml", "start: S\nrules:\n  S:\n    a b: 1\n    a c b: 1\n");
    test::Keys const keys{{"path", "test.yaml"}, {"longest", 5}, {"validation", 50}, {"ngram_sentences", 10}, {"pack", pack}};
    return open_dataset(test::chosen(choice_of<DataKind>(), "grammar", keys), {folder.path(), folder.path(), 1, true});
  }

  std::unique_ptr<Dataset> masked(std::unique_ptr<Dataset> plain, std::uint64_t seed = 1) {
    return make_view("masked_tokens", std::move(plain), seed);
  }

  bool same(Batch const& a, Batch const& b) {
    return a["inputs"].to_vector() == b["inputs"].to_vector() && a["targets"].to_vector() == b["targets"].to_vector();
  }

  constexpr char const* bert = R"(
name: bert
data: {kind: grammar, validation: 40, ngram_sentences: 10}
model: {kind: bert, layers: 1, heads: 2, width: 16, context: 32}
train: {steps: 6, batch: 3, evaluate: {every: 3}, ema: 0.9}
)";

  /// A count is within five standard deviations of a binomial's mean.
  void binomial(double count, double n, double p) { CHECK(std::abs(count - n * p) < 5 * std::sqrt(n * p * (1 - p))); }

  }  // namespace

  TEST_CASE("15 % are chosen: of these 80 % masked, 10 % random, 10 % kept; the targets are the tokens as they were") {
    auto const data = masked(plain_text(1));
    auto const plain = plain_text(1);
    CHECK(data->vocabulary() == 27);
    for (bool const training : {true, false}) {
      CAPTURE(training);
      double tokens = 0, chosen = 0, masked = 0, kept = 0;
      Index const batches = training ? 40 : plain->validation_batches(16, 32);
      for (Index b = 0; b < batches; ++b) {
        auto const batch = training ? data->training(b, 16, 32) : data->validation(b, 16, 32);
        auto const before = training ? plain->training(b, 16, 32) : plain->validation(b, 16, 32);
        auto const was = before["inputs"].data<std::int64_t>(), counts = before["next"].data<std::int64_t>();
        auto const inputs = batch["inputs"].data<std::int64_t>(), targets = batch["targets"].data<std::int64_t>();
        for (std::size_t i = 0; i < was.size(); ++i) {
          if (counts[i] < 0) CHECK(targets[i] == -1);  // padding
          if (counts[i] >= 0) ++tokens;
          if (targets[i] < 0) {
            CHECK(inputs[i] == was[i]);
            continue;
          }
          CHECK(targets[i] == was[i]);
          ++chosen;
          masked += inputs[i] == 26 ? 1 : 0;
          kept += inputs[i] == was[i] ? 1 : 0;
        }
      }
      REQUIRE(tokens > 5000);
      binomial(chosen, tokens, 0.15);
      binomial(masked, chosen, 0.8);
      binomial(kept, chosen, 0.1 + 0.1 / 26);  // a random token may be the same
    }
  }

  TEST_CASE("random tokens are even, and never [MASK]") {
    auto const data = masked(plain_text(1));
    std::vector<double> counts(26);
    double random = 0;
    for (Index b = 0; b < 300; ++b) {
      auto const batch = data->training(b, 16, 64);
      auto const inputs = batch["inputs"].data<std::int64_t>(), targets = batch["targets"].data<std::int64_t>();
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (targets[i] < 0 || inputs[i] == 26 || inputs[i] == targets[i]) continue;
        ++at(counts, inputs[i]);
        ++random;
      }
    }
    REQUIRE(random > 3000);
    for (double const count : counts) binomial(count, random, 1.0 / 26);
  }

  TEST_CASE("masks are a function of seed and row in training, of the row alone in validation") {
    auto const one = masked(plain_text(1)), again = masked(plain_text(1)), other = masked(plain_text(2), 2);
    CHECK(same(one->training(5, 8, 32), again->training(5, 8, 32)));
    CHECK(!same(one->training(5, 8, 32), one->training(6, 8, 32)));
    CHECK(!same(one->training(5, 8, 32), other->training(5, 8, 32)));
    CHECK(same(one->validation(2, 8, 32), other->validation(2, 8, 32)));
  }

  TEST_CASE("what a row is asked for depends on the row alone: of texts and sentences, however they are put into batches") {
    std::unique_ptr<Dataset> const all[]{masked(plain_text(1)), masked(sentences(false)), masked(sentences(true))};
    for (auto const& data : all)
      for (bool const training : {true, false}) {
        CAPTURE(training);
        auto const batch = [&](Index index, Index rows) {
          return training ? data->training(index, rows, 6) : data->validation(index, rows, 6);
        };
        for (Index const rows : {2, 3, 7, 24}) {
          Batch const whole = batch(0, rows);
          for (Index row = 0; row < rows; ++row) {
            Batch const alone = batch(row, 1);
            for (char const* const part : {"inputs", "targets"}) CHECK(whole[part].rows(row, 1).to_vector() == alone[part].to_vector());
            CHECK(counted(alone["targets"]) >= 1);
          }
        }
        Batch const large = batch(0, 24), second = batch(1, 12);  // two micro-batches are one batch
        CHECK(large["targets"].rows(12, 12).to_vector() == second["targets"].to_vector());
      }
  }

  TEST_CASE_FIXTURE(test::InFolder, "the validation loss does not depend on how many rows are read at once") {
    test::put(folder / "bert.yaml", bert);
    std::optional<double> first;
    for (std::string const rows : {"1", "2", "7", "40"}) {
      REQUIRE(run(test::quiet_run(folder, "bert.yaml", {"train.steps=0", "train.evaluate.batch=" + rows, "name=" + rows})) == Exit::done);
      double const loss = test::summary_of(folder / "runs" / rows)["validation.loss"];
      CHECK(loss == doctest::Approx(first.value_or(loss)).epsilon(1e-5));
      if (!first) first = loss;
    }
  }

  TEST_CASE("sentences: neither their ends nor padding are chosen; a row always has a target") {
    auto const data = masked(sentences());
    auto const before = sentences();
    for (Index b = 0; b < 200; ++b) {
      auto const batch = data->training(b, 1, 6);
      auto const was = before->training(b, 1, 6)["inputs"].to_vector();
      auto const targets = batch["targets"].data<std::int64_t>();
      CHECK(std::ranges::count(targets, -1) < 6);
      for (std::size_t i = 0; i < was.size(); ++i) CHECK((targets[i] == -1 || (targets[i] == static_cast<Index>(was[i]) && was[i] != 0)));
    }
  }

  TEST_CASE("lengths: the padding of text, sentences and tasks stands behind them, and nothing else") {
    std::unique_ptr<Dataset> const all[]{plain_text(1), sentences(false), sentences(true)};
    for (auto const& data : all)
      for (bool const training : {true, false}) {
        Index padded = 0;
        Index const batches = training ? 3 : data->validation_batches(16, 32);
        for (Index b = 0; b < batches; ++b) {
          Batch const batch = training ? data->training(b, 16, 32) : data->validation(b, 16, 32);
          auto const next = batch["next"].data<std::int64_t>();
          for (Index row = 0; row < batch.rows(); ++row) {
            Index const length = batch.has("lengths") ? at(batch["lengths"].data<std::int64_t>(), row) : 32;
            for (Index i = 0; i < 32; ++i) CHECK((at(next, row * 32 + i) < 0) == (i >= length));
            padded += 32 - length;
          }
        }
        CHECK((padded > 0) == (!training || data == all[1]));
      }
    auto const hidden = masked(sentences(false));
    CHECK(test::same_bits(hidden->training(0, 4, 16)["lengths"], all[1]->training(0, 4, 16)["lengths"]));
    CHECK(test::same_bits(hidden->validation(0, 4, 16)["lengths"], all[1]->validation(0, 4, 16)["lengths"]));
  }

  TEST_CASE_FIXTURE(test::InFolder, "a BERT trains on text and sentences, says how often it is right, and does not continue a text") {
    test::put(folder / "letters.txt", letters(3'000));
    test::put(folder / "bert.yaml", bert);
    auto options = test::quiet_run(folder, "bert.yaml");
    options.fresh = true;
    for (std::string const data : {"{kind: text, path: letters.txt}", "{kind: grammar, validation: 12, ngram_sentences: 10}"}) {
      CAPTURE(data);
      options.overrides = {"data=" + data};
      REQUIRE(run(options) == Exit::done);
      auto const summary = test::summary_of(folder / "runs/bert");
      CHECK(std::isfinite(summary["validation.loss"].get<double>()));
      CHECK(summary["validation.accuracy"].get<double>() <= 1);
      CHECK(summary.contains("validation.ema.accuracy"));
      CHECK(summary["data"]["masked"]["chosen"] == 0.15);
      CHECK(!summary.contains("validation.excess"));
      SampleOptions sampling;
      sampling.run = folder / "runs/bert";
      std::ostringstream out;
      CHECK_THROWS_WITH_AS(sample(sampling, out), doctest::Contains("its model, of kind bert, does not continue a text"), ConfigError);
    }
  }
}
