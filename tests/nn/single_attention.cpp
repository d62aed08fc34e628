#include "nn/models/single_attention.hpp"

#include "autograd/ops/product.hpp"
#include "autograd/ops/softmax.hpp"
#include "tests/nn/models.hpp"

TEST_SUITE("single_attention") {
  using namespace heed;

  namespace {

  // Keys 1 … 4, values 5 … 7.
  constexpr Index vocabulary = 8;

  SingleAttentionSettings one_key(std::string const& attention = "scaled") {
    SingleAttentionSettings settings;
    settings.pairs = 3;
    settings.keys = 4;
    settings.key_width = 5;
    settings.attention.from_word(attention);
    return settings;
  }

  SingleAttentionSettings two_keys(Index heads, std::string const& attention = "scaled") {
    auto settings = one_key(attention);
    settings.question = 2;
    settings.context = 9;
    settings.heads = heads;
    settings.width = 8;
    settings.key_width.reset();
    settings.readout = "linear";
    return settings;
  }

  Batch one_question() {
    return {{"inputs", Tensor::of(std::vector<Index>{2, 5, 1, 7, 4, 6, 4, 3, 7, 1, 5, 2, 6, 1}, {2, 7})},
            {"targets", Tensor::of(std::vector<Index>{-1, -1, -1, -1, -1, -1, 6, -1, -1, -1, -1, -1, -1, 5}, {2, 7})}};
  }
  Batch two_questions() {
    return {{"inputs", Tensor::of(std::vector<Index>{2, 5, 1, 7, 4, 6, 4, 2, 0}, {1, 9})},
            {"targets", Tensor::of(std::vector<Index>{-1, -1, -1, -1, -1, -1, -1, 6, 5}, {1, 9})}};
  }

  std::unique_ptr<Model> made(Parameters& parameters, SingleAttentionSettings const& settings, Index tokens) {
    return model_kind("single_attention").make(parameters, settings, Signature::tokens(tokens));
  }

  }  // namespace

  TEST_CASE("a fixed readout gives each value its weight, at the last place of the row") {
    Parameters parameters(1, DType::float64);
    auto const model = made(parameters, one_key(), vocabulary);
    CHECK(model->context() == 7);
    CHECK(model->vocabulary() == vocabulary);
    test::RecordedPass const recorded({.weights = true});
    Batch const batch = one_question();
    Tensor const logits = model->logits(batch, recorded.pass);
    REQUIRE(logits.shape() == Shape{2, 7, vocabulary});
    auto const records = recorded.records();
    REQUIRE(records.size() == 1);
    CHECK(records[0].layer == "blocks.0.attention");
    CHECK(records[0].of.queries.empty());
    CHECK(records[0].of.keys.empty());
    Tensor const& weights = records[0].weights;
    REQUIRE(weights.shape() == Shape{2, 1, 1, 3});
    auto const a = weights.to_vector(), scores = logits.to_vector();
    auto const inputs = batch["inputs"].data<std::int64_t>();

    // The weights from the projections, by hand: √4 · (column of the query token) · √4 · (column of the key token) / √5.
    Tensor const &q = *parameters.find("blocks.0.attention.query.weight"), &k = *parameters.find("blocks.0.attention.key.weight");
    Tensor const e = scale(matmul(q, k, true), 4 / std::sqrt(5));
    for (std::size_t row = 0; row < 2; ++row) {
      std::vector<double> of_keys;
      for (std::size_t j = 0; j < 3; ++j) of_keys.push_back(e.at((inputs[row * 7 + 6] - 1) * 4 + inputs[row * 7 + 2 * j] - 1));
      auto const expected = softmax(Tensor::of(of_keys, {3})).to_vector();
      for (std::size_t j = 0; j < 3; ++j) {
        CHECK(a[row * 3 + j] == doctest::Approx(expected[j]));
        auto const value = static_cast<std::size_t>(inputs[row * 7 + 2 * j + 1]);
        CHECK(scores[(row * 7 + 6) * vocabulary + value] == doctest::Approx(8 * a[row * 3 + j]));
      }
      for (std::size_t token = 0; token < 5; ++token) CHECK(scores[(row * 7 + 6) * vocabulary + token] == -100);
    }
  }

  TEST_CASE("as many parameters whatever the number of heads") {
    for (Index const heads : {1, 2, 4, 8}) {
      Parameters parameters(1, DType::float64);
      auto const model = made(parameters, two_keys(heads), vocabulary);
      CHECK(parameters.elements() == 8 * (2 * 4) + 8 * 4 + 8 * 3 + (2 * 3) * 8);
      for (char const* part : {"query", "key", "value", "output"})
        CHECK(parameters.find(std::string("blocks.0.attention.") + part + ".weight") != nullptr);
      CHECK(model->logits(two_questions(), {}).shape() == Shape{1, 9, vocabulary});
    }
  }

  TEST_CASE("queries and keys start with variance spread², whatever stands for a key") {
    for (auto const* inputs : {"one_hot", "gaussian"}) {
      CAPTURE(inputs);
      auto settings = one_key();
      settings.keys = 200;
      settings.inputs = inputs;
      settings.key_width = 64;
      settings.spread = 0.5;
      Parameters parameters(1, DType::float64);
      auto const model = made(parameters, settings, 203);
      Tensor const& weights = *parameters.find("blocks.0.attention.key.weight");
      CHECK(mean(weights * weights).item() == doctest::Approx(0.25 / 200).epsilon(0.05));
    }
  }

  TEST_CASE("derivatives through the logits") {
    for (char const* attention : {"scaled", "dot", "additive", "general", "local-p"})
      for (bool const two : {false, true}) {
        INFO("attention ", attention, ", two ", two);
        auto const settings = two ? two_keys(2, attention) : one_key(attention);
        Batch const batch = two ? two_questions() : one_question();
        Parameters drawn(3, DType::float64);
        auto const model = made(drawn, settings, vocabulary);
        test::check_gradient(drawn, [&](Parameters& parameters) { return made(parameters, settings, vocabulary)->logits(batch, {}); });
      }
  }

  TEST_CASE("the order of the pairs does not matter, that of the question does") {
    Parameters parameters(1, DType::float64);
    auto const model = made(parameters, two_keys(2), vocabulary);
    auto const logits = [&](std::vector<Index> const& row) { return model->logits({{"inputs", Tensor::of(row, {1, 9})}}, {}); };
    Tensor const one = logits({2, 5, 1, 7, 4, 6, 4, 2, 0});
    CHECK(test::absolute_difference(one, logits({4, 6, 2, 5, 1, 7, 4, 2, 0})) < 1e-12);
    CHECK(!test::same_bits(one, logits({2, 5, 1, 7, 4, 6, 2, 4, 0})));
  }

  TEST_CASE("settings and rows that do not fit are refused") {
    using test::said;
    CHECK(said(one_key(), [](auto&) {}).empty());
    CHECK(said(two_keys(3), [](auto&) {}).starts_with("heads: 3 heads do not divide"));
    CHECK(said(two_keys(2), [](auto& s) { s.readout = "fixed"; }).starts_with("heads: "));
    CHECK(said(two_keys(1), [](auto& s) { s.readout = "fixed"; }).starts_with("question: "));
    CHECK(said(one_key(), [](auto& s) { s.input_width = 3; }).starts_with("input_width: "));
    CHECK(said(one_key(), [](auto& s) { s.context = 6; }).starts_with("context: "));
    Parameters parameters(1, DType::float64), few(1, DType::float64);
    CHECK_THROWS_WITH_AS(made(few, one_key(), 5), "model.keys: of 5 tokens, a blank and 4 keys leave no value", Error);
    auto const model = made(parameters, one_key(), vocabulary);
    CHECK_NOTHROW(model->check(one_question()));
    auto wrong = one_question();
    wrong["inputs"].mutable_data<std::int64_t>()[2] = 6;
    CHECK_THROWS_WITH_AS(model->check(wrong), doctest::Contains("model.pairs: position 2 of a sequence should hold a key, not token 6"),
                         Error);
    wrong = one_question();
    wrong["targets"].mutable_data<std::int64_t>()[5] = 6;
    CHECK_THROWS_WITH_AS(model->check(wrong), doctest::Contains("model.question: "), Error);
    CHECK_THROWS_WITH_AS(model->logits(two_questions(), {}), "single_attention: sequences of 9 tokens, not of 7", Error);
  }
}
