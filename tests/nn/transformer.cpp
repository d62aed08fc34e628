#include "nn/models/transformer.hpp"

#include "autograd/ops/shape.hpp"
#include "nn/qk_clip.hpp"
#include "tests/nn/models.hpp"

TEST_SUITE("transformer") {
  using namespace heed;
  using namespace heed::test;

  namespace {

  constexpr Index vocabulary = 11;

  TransformerSettings small(std::string const& attention = "scaled", std::string const& position = "sinusoidal") {
    return small_stack<TransformerSettings>(attention, position, 8);
  }

  struct Made : PairModel {
    explicit Made(TransformerSettings const& settings, double std = 0.5) : PairModel("transformer", settings, vocabulary, std) {}
  };

  }  // namespace

  TEST_CASE("what stands behind the lengths of source and target changes no bit of any result or gradient") {
    Batch const batch = padded_pairs(vocabulary, false), other = padded_pairs(vocabulary, true);
    for (std::string const position : {"none", "learned", "sinusoidal", "rotary", "alibi", "t5", "shaw"})
      for (std::string const attention : {"scaled", "additive", "general", "local-m", "local-p", "hard"})
        for (bool const composed : {false, true}) {
          INFO("position ", position, ", attention ", attention, ", composed ", composed);
          std::optional<ReferenceAttention> no_kernels;
          if (composed) no_kernels.emplace();
          TransformerSettings settings = small(attention, position);
          settings.dropout = 0.1;
          Made made(settings);
          CHECK(results(made.model, made.parameters, batch) == results(made.model, made.parameters, other));
        }
  }

  TEST_CASE("a place of the target sees itself, the places before it, and the source as far as it goes") {
    for (std::string const position : {"none", "learned", "sinusoidal", "rotary", "alibi", "t5", "shaw"})
      for (std::string const placement : {"pre", "post"}) {
        INFO("position ", position, ", placement ", placement);
        TransformerSettings settings = small("scaled", position);
        settings.norm.placement = placement;
        Made made(settings);
        Batch batch{{"inputs", random_tokens({1, 7}, vocabulary, "inputs")},
                    {"source", random_tokens({1, 9}, vocabulary, "source")},
                    {"source_lengths", Tensor::of(std::vector<Index>{6}, {1})}};
        Batch other = batch;
        other.set("inputs", changed_at(batch["inputs"], 4, vocabulary));
        CHECK(first_difference(made.model, batch, other) == 4);
        other = batch;
        other.set("source", changed_at(batch["source"], 5, vocabulary));
        CHECK(first_difference(made.model, batch, other) == 0);
        other.set("source", changed_at(batch["source"], 6, vocabulary));
        CHECK(first_difference(made.model, batch, other) == -1);
      }
  }

  TEST_CASE("sources of any length: a padded row gives what it gives alone") {
    for (std::string const attention : {"scaled", "additive", "general", "local-m", "local-p"}) {
      CAPTURE(attention);
      Made made(small(attention, "t5"));
      for (std::vector<Index> const& ends : {source_lengths, std::vector<Index>{9, 1, 12}}) {
        Tensor const source = random_tokens({3, ends[2] > 9 ? 12 : 9}, vocabulary, "source"),
                     inputs = random_tokens({3, 7}, vocabulary, "inputs");
        Tensor const together = made.model.logits({{"inputs", inputs}, {"source", source}, {"source_lengths", Tensor::of(ends, {3})}}, {});
        for (Index row = 0; row < 3; ++row) {
          Tensor const own = slice(source.rows(row, 1), 1, 0, at(ends, row));
          check_close(made.model.logits({{"inputs", inputs.rows(row, 1)}, {"source", own}}, {}), together.rows(row, 1), 1e-12);
        }
      }
    }
  }

  TEST_CASE("the gradient of the whole model, with padding") {
    using Words = std::array<std::string, 4>;
    for (auto const& [attention, cross, position, placement] :
         {Words{"scaled", "same", "sinusoidal", "post"}, Words{"additive", "same", "learned", "pre"},
          Words{"general", "additive", "t5", "pre"}, Words{"scaled", "general", "shaw", "post"}}) {
      std::string const kinds = attention + ", " + cross;
      CAPTURE(kinds);
      TransformerSettings settings = small(attention, position);
      settings.cross_attention.from_word(cross);
      settings.layers = 1;
      settings.width = settings.context = 4;
      settings.norm.placement = placement;
      settings.activation = "gelu";  // relu has a kink
      check_pair_gradient("transformer", settings, 0.5);
    }
  }

  TEST_CASE("run again for its gradient, a block has the same one, its memory's included") {
    for (std::string const attention : {"scaled", "hard"}) {
      CAPTURE(attention);
      TransformerSettings settings = small(attention);
      settings.dropout = 0.2;
      Made made(settings);
      auto const gradients = [&](bool again) {
        ChoosingPass const choosing(training(0, again));
        made.parameters.clear_gradients();
        choosing.with_choices(made.model.loss(some_pairs(vocabulary), choosing.pass)).backward();
        std::vector<double> all;
        append_gradients(all, made.parameters);
        return all;
      };
      auto const kept = gradients(false), again = gradients(true);
      for (std::size_t i = 0; i < kept.size(); ++i) REQUIRE(again[i] == doctest::Approx(kept[i]).epsilon(1e-10));
    }
  }

  TEST_CASE("observers see self-attention of both sides and cross-attention, each with its shape") {
    TransformerSettings settings = small("additive");
    settings.cross_attention.from_word("general");
    Made made(settings);
    CHECK(made.parameters.find("decoder.blocks.1.attention.score.vector") != nullptr);
    CHECK(made.parameters.find("decoder.blocks.1.cross_attention.score.matrix") != nullptr);
    CHECK(made.parameters.find("encoder.blocks.1.norm3.weight") == nullptr);
    CHECK(made.parameters.find("encoder.blocks.1.cross_attention.query.weight") == nullptr);
    std::vector<std::string> layers, streams;
    RecordedPass recorded({.weights = true});
    recorded.observer.stream = [&](std::string const& layer, Tensor const&) { streams.push_back(layer); };
    made.model.logits(some_pairs(vocabulary), recorded.pass);
    for (AttentionRecord const& record : recorded.records()) {
      layers.push_back(record.layer);
      bool const cross = record.layer.ends_with("cross_attention"), encodes = record.layer.starts_with("encoder");
      CHECK(record.weights.shape() == Shape{3, 2, encodes ? 9 : 7, encodes || cross ? 9 : 7});
      CHECK(record.of.queries == (encodes ? "source" : "inputs"));
      CHECK(record.of.keys == (encodes || cross ? "source" : "inputs"));
      CHECK(record.visibility.offset == 0);
    }
    CHECK(layers == std::vector<std::string>{"encoder.blocks.0.attention", "encoder.blocks.1.attention", "decoder.blocks.0.attention",
                                             "decoder.blocks.0.cross_attention", "decoder.blocks.1.attention",
                                             "decoder.blocks.1.cross_attention"});
    CHECK(streams == std::vector<std::string>{"encoder.blocks.0", "encoder.blocks.1", "decoder.blocks.0", "decoder.blocks.1"});
  }

  TEST_CASE(
      "a choice of the encoder reaches all of the target; of the decoder, its place and those after it, of the last block its place") {
    Made made(small("hard"));
    using enum HardChoices::Reach;
    CHECK(reaches(made.model, some_pairs(vocabulary)) == std::vector{sequence, sequence, later, later, position, position});
    CHECK(made.model.estimator() != nullptr);
  }

  TEST_CASE("cross_attention: attention's unless a score is given") {
    TransformerSettings settings = small("additive");
    CHECK(settings.cross().score == "additive");
    settings.cross_attention.align = "sparsemax";
    CHECK(settings.cross_attention.contradiction().value_or("").starts_with("score: "));
    settings.cross_attention.score = "dot";
    CHECK_FALSE(settings.cross_attention.contradiction());
    CHECK(settings.cross().align == "sparsemax");
    CHECK(settings.cross_attention.from_word("same"));
    CHECK(settings.cross().score == "additive");
    settings.attention.from_word("hard");
    CHECK_FALSE(settings.contradiction());
    settings.cross_attention.from_word("hard");
    settings.cross_attention.estimator.estimator = "gumbel";
    CHECK(settings.contradiction().value_or("").starts_with("cross_attention: "));
  }

  TEST_CASE("a source of its own vocabulary, a head of its own") {
    TransformerSettings settings = small();
    settings.tie = false;
    Parameters parameters(3, DType::float64, wide());
    auto const model = pair_model("transformer", parameters, settings, vocabulary, 5);
    CHECK(parameters.find("encoder.token_embedding.weight")->shape() == Shape{5, 8});
    CHECK(parameters.find("decoder.token_embedding.weight")->shape() == Shape{vocabulary, 8});
    CHECK(parameters.find("head.weight")->shape() == Shape{vocabulary, 8});
    CHECK(model->vocabulary() == vocabulary);
    Batch const batch{{"inputs", random_tokens({2, 7}, vocabulary, "inputs")}, {"source", random_tokens({2, 9}, 5, "source")}};
    CHECK(model->logits(batch, {}).shape() == Shape{2, 7, vocabulary});
    CHECK_NOTHROW(model->check(batch));
  }

  TEST_CASE("mlp_width is that of both sides") {
    TransformerSettings settings = small();
    Parameters usual(1, DType::float64), narrow(1, DType::float64);
    auto const four = pair_model("transformer", usual, settings, vocabulary);
    settings.mlp_width = 5;
    auto const five = pair_model("transformer", narrow, settings, vocabulary);
    CHECK(narrow.find("encoder.blocks.0.mlp.up.weight")->shape() == Shape{5, 8});
    CHECK(narrow.find("decoder.blocks.1.mlp.down.weight")->shape() == Shape{8, 5});
    CHECK(usual.elements() - narrow.elements() == 4 * (32 - 5) * (2 * 8 + 1));
    CHECK(four->flops_per_token() - five->flops_per_token() == 4 * 2 * (32 - 5) * 8.0 * 2);
  }

  TEST_CASE("rows that it cannot read are refused by the key that they concern") {
    Made made(small());
    Batch batch{{"inputs", random_tokens({2, 7}, vocabulary, "inputs")}};
    CHECK_THROWS_WITH_AS(made.model.logits(batch, {}), "a batch has no 'source'; it has inputs", Error);
    batch.set("source", random_tokens({2, 13}, vocabulary, "source"));
    CHECK_THROWS_WITH_AS(made.model.check(batch), "model.context: a source has 13 tokens, but it is made for 12", Error);
    batch.set("source", random_tokens({2, 12}, vocabulary, "source"));
    batch.set("inputs", random_tokens({2, 13}, vocabulary, "inputs"));
    CHECK_THROWS_WITH_AS(made.model.check(batch), "model.context: a target has 13 tokens, but it is made for 12", Error);
  }

  TEST_CASE("both sides have layers that differ; what is padding changes no bit of linear attention either") {
    auto settings = small("scaled", "none");
    for (std::string const type : {"gated_deltanet", "scaled"}) dynamic_cast<LayerSettings&>(settings.pattern.list.add()).from_word(type);
    REQUIRE(said(settings, [](auto&) {}) == "");
    Made made(settings, 0.3);
    CHECK(results(made.model, made.parameters, padded_pairs(vocabulary, false)) ==
          results(made.model, made.parameters, padded_pairs(vocabulary, true)));
    auto const has = [&](std::string const& name) { return made.parameters.find(name) != nullptr; };
    CHECK((has("encoder.blocks.0.attention.decay.rate") && has("decoder.blocks.0.attention.decay.rate")));
    CHECK_FALSE(has("decoder.blocks.1.attention.decay.rate"));
    CHECK(said(settings, [](auto& s) { s.attention.from_word("kda"); }).starts_with("cross_attention: "));
  }

  TEST_CASE("QK-clip scales the projections of all three attentions, and refuses a score of cross-attention by its key") {
    auto settings = sized<TransformerSettings>(1, 2, 8, 12);
    Made made(settings);
    auto const before = values_by_name(made.parameters);
    QueryKeyClip clip(made.parameters, 1e-6);
    Pass pass;
    pass.watching.observer = clip.watch(nullptr);
    made.model.run(some_pairs(vocabulary), pass);
    CHECK(clip.largest().size() == 3 * 2);
    clip.clip(clip.largest());
    for (auto const& each : made.parameters.all()) {
      std::string const& name = each.first;
      CAPTURE(name);
      CHECK((each.second.to_vector() == before.at(name)) == (!name.ends_with(".query.weight") && !name.ends_with(".key.weight")));
    }

    auto const contradiction = [&] {
      return contradiction_of_qk_clip({model_choice().options, "transformer", std::make_shared<TransformerSettings>(settings)})
          .value_or("");
    };
    CHECK(contradiction() == "");
    settings.cross_attention.from_word("additive");
    CHECK(contradiction().starts_with("train.qk_clip: with model.cross_attention.score: additive"));
  }
}
