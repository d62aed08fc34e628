#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/reduce.hpp"
#include "tests/difference.hpp"
#include "tests/nn/choice.hpp"
#include "tests/nn/small_model.hpp"

TEST_SUITE("model") {
  using namespace heed;

  namespace {

  Tensor rows(std::vector<Index> const& values, Index count) {
    return Tensor::of(values, {count, static_cast<Index>(values.size()) / count});
  }

  /// Two logits a place and two a row of the same inputs, and a penalty: as a model with several terms has them.
  struct TwoTerms : test::SmallModel {
    explicit TwoTerms(Parameters& parameters)
        : SmallModel(3, 3, 2),
          token(parameters.add("token", {3, 2}, Initial::normal(1), WeightDecay::on)),
          label(parameters.add("label", {3, 2}, Initial::normal(1), WeightDecay::on)),
          weight(parameters.add("weight", {2, 2}, Initial::normal(1), WeightDecay::on)) {}
    std::vector<Term> terms() const override { return {{"token", "targets", 1}, {"label", "labels", 0.5}}; }
    Outcome run(Batch const& batch, Pass const&) const override {
      Tensor const of_row = mean(embedding(label, batch["inputs"]), {1});
      return {{{terms()[0], {embedding(token, batch["inputs"]), weight}}, {terms()[1], {of_row}}}, mean(of_row * of_row)};
    }
    Tensor token, label, weight;
  };

  }  // namespace

  TEST_CASE("a batch: parts by name, of which none is undefined") {
    Batch batch{{"inputs", rows({1, 2, 3, 4}, 2)}, {"lengths", Tensor()}};
    CHECK(batch.has("inputs"));
    CHECK(!batch.has("lengths"));
    CHECK(!batch.get("lengths").defined());
    CHECK(batch.rows() == 2);
    CHECK(Batch().rows() == 0);
    CHECK_THROWS_WITH_AS(batch["source"], "a batch has no 'source'; it has inputs", Error);
    CHECK_THROWS_WITH_AS(Batch()["source"], "a batch has no 'source'; it has nothing", Error);
    batch.set("source", rows({5, 6}, 2));
    batch.set("inputs", rows({7, 8}, 2));
    CHECK(batch["inputs"].to_vector() == std::vector<double>{7, 8});
    CHECK(batch.parts().size() == 2);
    batch.set("source", {});
    CHECK(!batch.has("source"));
  }

  TEST_CASE("a signature says what data give, and is read from its text as it was") {
    Signature const tokens = Signature::tokens(7);
    CHECK(tokens["targets"].classes == 7);
    CHECK_THROWS_WITH_AS(tokens["source"], "there is no 'source' in a batch; there are inputs, targets", Error);
    Signature all = tokens;
    all.set({.name = "source", .classes = 9, .vocabulary = "ä", .longest = 5, .max_tokens = 40, .added = {"[MASK]"}, .made_by = "view"});
    CHECK(Signature::parse(all.text(), "x") == all);
    CHECK(all != tokens);
    all.remove("source");
    CHECK(all == tokens);
    for (auto const* const wrong : {"", "3", "[3]", "[{}]", R"([{"name": "inputs", "classes": "many"}])",
                                    R"([{"name":"a","classes":0,"vocabulary":"","longest":0,"places":0,"added":0,"made_by":""}])"}) {
      CAPTURE(wrong);
      CHECK_THROWS_WITH_AS(Signature::parse(wrong, "x"), doctest::Contains("x"), FileError);
    }
  }

  TEST_CASE("a loss is the sum of its terms by their weights, and the penalty; a step's parts make the whole") {
    Parameters parameters(3, DType::float64);
    TwoTerms const model(parameters);
    Batch const batch{{"inputs", rows({0, 1, 2, 2, 1, 0, 1, 1, 2, 0, 0, 1}, 4)},
                      {"targets", rows({0, 1, -1, 1, 0, 1, -1, -1, -1, 0, -1, 1}, 4)},
                      {"labels", Tensor::of(std::vector<Index>{1, -1, 0, 1}, {4})}};
    Outcome const outcome = model.run(batch, {});
    double const token = cross_entropy(model.logits(batch, {}), batch["targets"], 0.1).item();
    double const label = cross_entropy(outcome.predictions[1].head.x, batch["labels"], 0.1).item();
    Tensor const whole = model.loss(batch, {}, 0.1);
    CHECK(whole.item() == doctest::Approx(token + 0.5 * label + outcome.penalty.item()).epsilon(1e-12));

    Batch const first = batch.first(1), rest = batch.chosen(std::vector<Index>{1, 2, 3});
    Counts all = model.counts(first);
    all += model.counts(rest);
    CHECK(all.targets == std::vector<double>{7, 3});
    CHECK(all.rows == 4);
    whole.backward();
    Tensor const expected = model.label.grad();
    parameters.clear_gradients();
    double sum = 0;
    for (Batch const& part : {first, rest}) {
      Tensor const loss = model.loss(part, {}, 0.1, all);
      loss.backward();
      sum += loss.item();
    }
    CHECK(sum == doctest::Approx(whole.item()).epsilon(1e-12));
    CHECK(test::difference(model.label.grad(), expected) <= 1e-12);
  }

  TEST_CASE("a model is made for what data give, and refuses what lacks a part that it reads") {
    Choice const choice = test::chosen(model_choice(), "gpt");
    Parameters parameters(3, DType::float32);
    CHECK(make_model(choice, parameters, Signature::tokens(11))->vocabulary() == 11);
    CHECK_THROWS_WITH_AS(make_model(choice, parameters, {{.name = "images", .classes = 256}}),
                         "model.kind: gpt reads 'inputs', which these data do not give; they give images", Error);
  }
}
