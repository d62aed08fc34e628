#include "nn/models/bert.hpp"

#include "autograd/ops/operations.hpp"
#include "nn/decode.hpp"
#include "nn/models/blocks.hpp"
#include "tests/nn/models.hpp"

TEST_SUITE("bert") {
  using namespace heed;
  using namespace heed::test;

  namespace {

  constexpr Index vocabulary = 11;

  BertSettings small(std::string const& position = "learned", std::string const& attention = "scaled") {
    return small_stack<BertSettings>(attention, position, 16);
  }

  Tensor some_tokens(Index rows, Index length) { return random_tokens({rows, length}, vocabulary); }

  /// The first place of a row of ten whose scores change when the token at `changed` does; −1: none.
  Index first_change(Model const& model, std::size_t changed) {
    Tensor const tokens = some_tokens(1, 10);
    return first_difference(model, {{"inputs", tokens}}, {{"inputs", changed_at(tokens, changed, vocabulary)}});
  }

  }  // namespace

  TEST_CASE("every token sees all of the row; a GPT's sees the past alone") {
    for (std::string const position : {"none", "learned", "sinusoidal", "rotary", "alibi", "t5", "shaw"}) {
      CAPTURE(position);
      Parameters parameters(3, DType::float64, wide()), same(3, DType::float64, wide());
      Bert const bert(parameters, small(position), vocabulary);
      Gpt const gpt(same, small(position), vocabulary);
      CHECK(first_change(bert, 7) == 0);
      CHECK(first_change(gpt, 7) == 7);
    }
  }

  TEST_CASE("the parameters of a BERT and a GPT are the same, by name, shape and first values") {
    Parameters parameters(3, DType::float64), same(3, DType::float64);
    Bert const bert(parameters, small("t5", "additive"), vocabulary);
    Gpt const gpt(same, small("t5", "additive"), vocabulary);
    auto const alike = [](auto const& a, auto const& b) { return a.first == b.first && same_bits(a.second, b.second); };
    CHECK(std::ranges::equal(parameters.all(), same.all(), alike));
    CHECK(bert.flops_per_token() > gpt.flops_per_token());
  }

  TEST_CASE("without positions, permuted tokens have permuted scores") {
    for (std::string const attention : {"scaled", "additive", "general"}) {
      CAPTURE(attention);
      Parameters parameters(3, DType::float64, wide());
      Bert const bert(parameters, small("none", attention), vocabulary);
      std::vector<Index> const tokens{3, 1, 4, 1, 5, 9, 2, 6}, order{5, 2, 7, 0, 1, 6, 3, 4};
      auto const scores = [&](Tensor const& inputs) {
        return bert.logits({{"inputs", inputs.viewed({1, 8})}}, {}).viewed({8, vocabulary});
      };
      Tensor const straight = Tensor::of(tokens, {8}), permuted = gather(straight, 0, Tensor::of(order, {8}));
      CHECK(absolute_difference(scores(permuted), take(scores(straight), order)) < 1e-12);
    }
  }

  TEST_CASE("what stands behind the lengths changes no bit of the loss, of the results at real places or of the gradients") {
    std::vector<Index> const lengths{10, 4, 7};
    for (std::string const position : {"none", "learned", "rotary", "alibi", "t5", "shaw"})
      for (std::string const attention : {"scaled", "additive", "general", "local-m", "local-p"})
        for (bool const composed : {false, true}) {
          INFO("position ", position, ", attention ", attention, ", composed ", composed);
          std::optional<ReferenceAttention> no_kernels;
          if (composed) no_kernels.emplace();
          Parameters parameters(3, DType::float64, wide());
          BertSettings settings = small(position, attention);
          settings.dropout = 0.1;
          Bert const bert(parameters, settings, vocabulary);
          Tensor const tokens = some_tokens(3, 10);
          Tensor const other = changed_behind(tokens, lengths, vocabulary), targets = changed_behind(tokens, lengths, vocabulary, true);
          auto const measured = [&](Tensor const& inputs, bool padded) {
            Batch batch{{"inputs", inputs}, {"targets", targets}};
            if (padded) batch.set("lengths", Tensor::of(lengths, {3}));
            return results(bert, parameters, batch);
          };
          CHECK(measured(tokens, true) == measured(other, true));
          CHECK(measured(tokens, false) != measured(other, false));
        }
  }

  TEST_CASE("lengths of whole rows change no bit") {
    Parameters parameters(3, DType::float32, wide());
    Bert const bert(parameters, small("t5", "additive"), vocabulary);
    Batch batch{{"inputs", some_tokens(3, 10)}};
    auto const without = bert.logits(batch, {}).to_vector();
    batch.set("lengths", Tensor::full({3}, 10, DType::int64));
    CHECK(bert.logits(batch, {}).to_vector() == without);
  }

  TEST_CASE("it does not generate text") {
    Parameters parameters(3, DType::float64);
    Bert const bert(parameters, small(), vocabulary);
    CHECK(!bert.decode({}, {}));
    CHECK_THROWS_AS(Decoder{bert}, Error);
    CHECK(model_kind("bert").reads(BertSettings())[1].view == "masked_tokens");
    CHECK(model_kind("gpt").reads(GptSettings())[1].view == "next_token");
    CHECK_THROWS_WITH_AS(model_kind("bret"), doctest::Contains("there is no kind 'bret'"), Error);
  }

  TEST_CASE_FIXTURE(NoGrad, "weights are observed without a change of the logits") {
    for (std::string const attention : {"scaled", "additive", "local-m"})
      for (bool const causal : {true, false}) {
        INFO("attention ", attention, ", causal ", causal);
        Parameters parameters(3, DType::float64, wide());
        auto const model = causal ? std::unique_ptr<Model>(std::make_unique<Gpt>(parameters, small("learned", attention), vocabulary))
                                  : std::make_unique<Bert>(parameters, small("learned", attention), vocabulary);
        Batch const batch{{"inputs", some_tokens(3, 9)}};
        RecordedPass const recorded({.weights = true, .scores = true});
        check_close(model->logits(batch, recorded.pass), model->logits(batch, {}), 1e-11);
        std::vector<std::string> layers;
        for (AttentionRecord const& view : recorded.records()) {
          Tensor const& weights = view.weights;
          layers.push_back(view.layer);
          CHECK(view.scores.shape() == weights.shape());
          CHECK(view.visibility.causal == causal);
          REQUIRE(weights.shape() == Shape{3, 2, 9, 9});
          check_close(sum(weights, {-1}), Tensor::ones({3, 2, 9}, DType::float64), 1e-12);
          if (causal) check_close(weights, tril(weights), 0);
        }
        CHECK(layers == std::vector<std::string>{"blocks.0.attention", "blocks.1.attention"});
      }
  }

  TEST_CASE_FIXTURE(NoGrad, "observed weights times values are the layer's output") {
    for (std::string const attention : {"scaled", "additive", "local-p"}) {
      CAPTURE(attention);
      Parameters parameters(3, DType::float64, wide());
      AttentionSettings settings;
      settings.from_word(attention);
      MultiHead const layer(Scope(parameters).at("attention"), settings, {12, 3, 4, 5, 8}, true, 0, 1);
      Tensor const x = some({2, 7, 12}, "x");
      RecordedPass const recorded({.weights = true});
      Tensor const found = layer(x, x, {.causal = true, .lengths = {}, .offset = 0}, recorded.pass, 0);
      auto const project = [&](Tensor const& from, std::string const& name) {
        return linear(from, *parameters.find("attention." + name + ".weight"), *parameters.find("attention." + name + ".bias"));
      };
      Tensor const context = merge_heads(matmul(recorded.records().at(0).weights, split_heads(project(x, "value"), 3)));
      Tensor const expected = project(context, "output");
      check_close(found, expected, 1e-11);
    }
  }
}
