#include "autograd/graph.hpp"
#include "nn/models/bert.hpp"
#include "tests/nn/models.hpp"

TEST_SUITE("linear_head") {
  using namespace heed;
  using test::absolute_difference, test::LogitsWithin;

  namespace {

  constexpr Index vocabulary = 37;

  StackSettings one_layer(bool tie) {
    auto settings = test::sized<StackSettings>(1, 2, 16, 30);
    settings.tie = tie;
    return settings;
  }

  struct Made {
    Made(bool causal, bool tie, DType dtype = DType::float64) : parameters(3, dtype) {
      if (causal)
        model = std::make_unique<Gpt>(parameters, one_layer(tie), vocabulary);
      else
        model = std::make_unique<Bert>(parameters, one_layer(tie), vocabulary);
      std::vector<Index> tokens, targets;
      for (Index i = 0; i < 300; ++i) {
        tokens.push_back(i * i % vocabulary);
        targets.push_back(!causal && i % 3 != 0 ? -1 : i * 7 % vocabulary);
      }
      batch = {{"inputs", Tensor::of(tokens, {10, 30})}, {"targets", Tensor::of(targets, {10, 30})}};
    }

    std::vector<Tensor> differentiated(Tensor const& loss) {
      parameters.clear_gradients();
      loss.backward();
      auto all = mapped(parameters.all(), [](auto const& each) { return each.second.grad(); });
      all.push_back(loss.detach());
      return all;
    }

    Parameters parameters;
    std::unique_ptr<Model> model;
    Batch batch;
  };

  }  // namespace

  TEST_CASE("a model's loss is that of its logits, with all gradients, whole or in blocks") {
    for (bool const causal : {true, false})
      for (bool const tie : {true, false}) {
        INFO("causal ", causal, ", tie ", tie);
        Made made(causal, tie);
        auto const expected = made.differentiated(cross_entropy(made.model->logits(made.batch, {}), made.batch["targets"], 0.1, -1, 200.0));
        auto const whole = made.differentiated(made.model->loss(made.batch, {}, 0.1, {{200}, 10}));
        LogitsWithin const nothing(0);
        auto const blocks = made.differentiated(made.model->loss(made.batch, {}, 0.1, {{200}, 10}));
        for (std::size_t i = 0; i < expected.size(); ++i) {
          CHECK(absolute_difference(whole[i], expected[i]) == 0);
          CHECK(absolute_difference(blocks[i], expected[i]) < 1e-14);
        }
      }
  }

  TEST_CASE("logits that are shown are those of the places in order, all of them") {
    Made const made(true, true);
    NoGrad const quiet;
    Tensor const all = made.model->logits(made.batch, {}).viewed({300, vocabulary});
    for (Index const bytes : {0, 1 << 20}) {
      LogitsWithin const limit(bytes);
      std::vector<Index> sizes;
      Index next = 0;
      made.model->each_logits(made.batch, {}, [&](Index first, Tensor const& logits) {
        CHECK(first == next);
        CHECK(absolute_difference(logits, all.rows(first, logits.size(0))) < 1e-14);
        sizes.push_back(logits.size(0));
        next += logits.size(0);
      });
      CHECK(sizes == (bytes == 0 ? std::vector<Index>{160, 140} : std::vector<Index>{300}));
    }
  }

  TEST_CASE("a model that has no linear head shows whole logits") {
    struct Other : Gpt {
      using Gpt::Gpt;
      Outcome run(Batch const& batch, Pass const& pass) const override {
        return {{{Term(), {tanh(Gpt::run(batch, pass).predictions.front().head.logits())}}}};
      }
    };
    Made made(true, true);
    Parameters parameters(3, DType::float64);
    Other const other(parameters, one_layer(true), vocabulary);
    LogitsWithin const nothing(0);
    Tensor const logits = other.logits(made.batch, {});
    CHECK(other.loss(made.batch, {}).item() == cross_entropy(logits, made.batch["targets"]).item());
    int calls = 0;
    other.each_logits(made.batch, {}, [&](Index first, Tensor const& shown) {
      CHECK(first == 0);
      CHECK(absolute_difference(shown, logits.viewed({300, vocabulary})) == 0);
      ++calls;
    });
    CHECK(calls == 1);
  }
}
