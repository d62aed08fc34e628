#include "nn/decode.hpp"
#include "nn/models/recurrent/recurrent.hpp"
#include "nn/models/recurrent/recurrent_settings.hpp"
#include "tests/nn/models.hpp"

TEST_SUITE("recurrent_lm") {
  using namespace heed;
  using namespace heed::test;

  namespace {

  constexpr Index vocabulary = 7;

  std::unique_ptr<Model> recurrent_lm(Parameters& parameters, RecurrentLmSettings const& settings) {
    return model_kind("recurrent_lm").make(parameters, settings, Signature::tokens(vocabulary));
  }

  struct Subject {
    explicit Subject(RecurrentLmSettings const& settings)
        : parameters(3, DType::float64, wide()), made(recurrent_lm(parameters, settings)), model(*made) {}
    Parameters parameters;
    std::unique_ptr<Model> made;
    Model& model;
  };

  std::vector<RecurrentLmSettings> all_settings() {
    std::vector<RecurrentLmSettings> all;
    for (std::string const& cell : Registry<CellKind>::names())
      for (Index const layers : {1, 2}) {
        RecurrentLmSettings settings;
        settings.cell = cell;
        settings.layers = layers;
        settings.width = 5;
        settings.tie = layers == 1;
        if (layers == 2) settings.embedding = 3;
        settings.norm = all.size() % 3 == 2 ? "layer" : "none";
        all.push_back(settings);
      }
    return all;
  }

  }  // namespace

  TEST_CASE("a place sees itself and those before it") {
    for (RecurrentLmSettings const& settings : all_settings()) {
      INFO("settings.cell ", settings.cell, ", settings.layers ", settings.layers);
      Subject const subject(settings);
      Batch const batch = some_text();
      Batch other = batch;
      other.set("inputs", changed_at(batch["inputs"], 2, vocabulary));
      auto const before = subject.model.logits(batch, {}).to_vector(), after = subject.model.logits(other, {}).to_vector();
      CHECK((std::ranges::mismatch(before, after).in1 - before.begin()) / vocabulary == 2);
      CHECK(std::equal(before.begin() + 4 * vocabulary, before.end(), after.begin() + 4 * vocabulary));
    }
  }

  TEST_CASE("the gradient of the whole model") {
    for (RecurrentLmSettings const& settings : all_settings()) {
      INFO("settings.cell ", settings.cell, ", settings.layers ", settings.layers);
      Subject const drawn(settings);
      auto const loss = [&](Parameters& parameters) { return recurrent_lm(parameters, settings)->loss(some_text(), {}); };
      check_gradient(drawn.parameters, loss, 10);
    }
  }

  TEST_CASE("texts are continued with the scores of a whole pass") {
    for (RecurrentLmSettings const& settings : all_settings()) {
      INFO("settings.cell ", settings.cell, ", settings.layers ", settings.layers);
      Subject const subject(settings);
      Tensor const tokens = some_text()["inputs"];
      Tensor const expected = subject.model.logits(some_text(), {});
      auto const decoding = subject.model.decode({}, {});
      REQUIRE(decoding);
      CHECK_FALSE(decoding->scores(Tensor::of(std::vector<Index>{1, 1}, {2})).requires_grad());
      decoding->restart();
      decoding->scores(Tensor::of(std::vector<Index>{0, 3, 1, 4}, {2, 2}));
      decoding->keep(std::vector<Index>{1, 0, 1});
      Tensor const found = decoding->scores(Tensor::of(std::vector<Index>{5, 2, 5}, {3}));
      for (Index row = 0; row < 3; ++row)
        check_close(found.rows(row, 1), expected.viewed({8, vocabulary}).rows((row == 1 ? 0 : 4) + 2, 1), 1e-11);
    }
    CHECK(Subject(all_settings()[0]).model.decode(some_text(), {}) == nullptr);
  }

  TEST_CASE("a tied head is the embedding, which must be as wide as the state") {
    RecurrentLmSettings settings;
    settings.tie = true;
    CHECK_FALSE(settings.contradiction());
    CHECK(Subject(settings).parameters.find("head.weight") == nullptr);
    settings.embedding = 3;
    CHECK(settings.contradiction().value_or("").starts_with("tie: "));
  }
}
