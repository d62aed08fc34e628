// Attention without softmax, and layers that differ: whole models beside themselves, token by token, padded, on any number of threads.

#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/linear/linear_attention.hpp"
#include "nn/decode.hpp"
#include "nn/models/bert.hpp"
#include "tests/nn/models.hpp"

TEST_SUITE("linear_layers") {
  using namespace heed;
  using test::absolute_difference, test::said, test::some, test::Tensors;

  namespace {

  constexpr Index width = 8, heads = 2, length = 5;

  /// Every combination that has a meaning, with small parts of the rest.
  std::vector<AttentionSettings> combinations() {
    std::vector<AttentionSettings> all;
    Index turn = 0;
    for (auto const& feature : Registry<FeatureKind>::names())
      for (auto const& decay : Registry<DecayKind>::names())
        for (auto const& write : Registry<WriteKind>::names()) {
          AttentionSettings s;
          s.linear.name = "linear";
          s.of_linear.feature = feature, s.of_linear.decay = decay, s.of_linear.write = write;
          if (write == "delta") s.of_linear.range = 2;
          if (turn % 2 == 1) s.convolution = 3, s.of_linear.activation = "silu";
          if (turn % 3 == 1) s.of_linear.output_norm = "head", s.of_linear.output_gate = "silu";
          if (turn % 3 == 2) s.of_linear.output_norm = "whole", s.of_linear.output_gate = "sigmoid";
          if (turn % 4 == 1) s.of_linear.groups = 1;
          if (turn % 5 == 1 && feature == "elu1") s.of_linear.normaliser = "sum";
          if (turn % 4 == 2 && write != "step") s.of_linear.steps = 2;
          if (turn % 4 == 3) s.of_linear.skip = true;
          ++turn;
          if (!s.contradiction()) all.push_back(s);
        }
    for (auto const& variant : linear_variants()) all.emplace_back().from_word(variant.name);
    return all;
  }

  std::string name_of(AttentionSettings const& s) {
    return s.linear.name + ": " + s.of_linear.feature + ", " + s.of_linear.decay + ", " + s.of_linear.write;
  }

  struct Layer {
    Layer(AttentionSettings const& settings, std::string const& kind, Parameters given)
        : parameters(std::move(given)),
          position(make_position(kind, Scope(parameters), {length, width, heads})),
          attention(Scope(parameters).at("attention"), settings, {width, heads, 4, 3, length}, true, 1, position.get()) {}
    Tensor operator()(Tensor const& x, Visibility const& sees, Pass const& pass = {}) const { return attention(x, sees, pass, 0); }

    Parameters parameters;
    std::unique_ptr<Position> position;
    LinearAttention attention;
  };

  Layer layer(AttentionSettings const& settings, std::string const& position = "none") {
    return {settings, position, Parameters(7, DType::float64, test::wide(0.4))};
  }

  Visibility const causal{.causal = true, .lengths = {}, .offset = 0};

  GptSettings stack(std::vector<std::string> const& types, Index layers) {
    auto s = test::sized<GptSettings>(layers, heads, width, 40);
    s.position = "none";
    for (auto const& type : types) dynamic_cast<LayerSettings&>(s.pattern.list.add()).from_word(type);
    return s;
  }

  }  // namespace

  TEST_CASE("derivatives of both orders are those of finite differences, causal and not") {
    Index turn = 0;
    for (auto const& settings : combinations()) {
      INFO(name_of(settings));
      std::string const position = turn++ % 2 == 0 ? "none" : "rotary";
      Visibility both;
      both.lengths = both.query_lengths = Tensor::of(std::vector<Index>{length, 3}, {2});
      auto const drawn = std::make_shared<Layer>(layer(settings, position));
      Tensors at{some({2, length, width}, "x")};
      for (auto const& [name, value] : drawn->parameters.all()) at.push_back(value.detach() + scale(some(value.shape(), name), 0.2));
      for (Visibility const& sees : {causal, both}) {
        auto const f = [&](Tensors const& x) {
          return Layer(settings, position, test::with_values(drawn->parameters, std::span(x).subspan(1)))(x[0], sees);
        };
        bool const kinks = settings.of_linear.feature == "relu";
        test::check_ok(gradcheck(f, at, 1e-7, kinks ? 1e-6 : 1e-4, 4));
        bool const again = settings.of_linear.feature == "identity" || settings.linear.name != "linear";  // features are engine operations
        if (again) test::check_ok(gradgradcheck(f, at, 1e-6, 1e-4, 2));
      }
    }
  }

  TEST_CASE_FIXTURE(NoGrad, "read token by token, it is the same; what comes later changes nothing, to the bit") {
    for (auto const& settings : combinations()) {
      INFO(name_of(settings));
      Layer const made = layer(settings, "rotary");
      Tensor const x = some({2, length, width}, "x"), whole = made(x, causal);
      KeyValueCache cache;
      cache.layers.resize(1);
      Pass pass;
      pass.decoding.cache = &cache;
      for (Index i = 0; i < length; i += i == 0 ? 2 : 1) {  // a prompt of two tokens, then one at a time
        Visibility const sees{.causal = true, .lengths = {}, .offset = i};
        Index const end = i == 0 ? 2 : i + 1;
        CHECK(absolute_difference(made(slice(x, 1, i, end), sees, pass), slice(whole, 1, i, end)) <= 1e-12);
      }
      CHECK(slice(made(slice(x, 1, 0, 3), causal), 1, 0, 3).to_vector() == slice(whole, 1, 0, 3).to_vector());
    }
  }

  TEST_CASE_FIXTURE(NoGrad, "a padded token changes no bit of the others, from both sides") {
    for (auto const& settings : combinations()) {
      INFO(name_of(settings));
      Layer const made = layer(settings);
      Visibility sees;
      sees.lengths = sees.query_lengths = Tensor::of(std::vector<Index>{3}, {1});
      Tensor const x = some({1, 3, width}, "x");
      auto const read = [&](std::string const& behind) {
        return slice(made(concatenate({x, some({1, 2, width}, behind)}, 1), sees), 1, 0, 3);
      };
      CHECK(read("a").to_vector() == read("b").to_vector());
      CHECK(absolute_difference(read("a"), made(x, Visibility{})) <= 1e-13);
    }
  }

  TEST_CASE("observers receive the implicit weights, which give the contexts") {
    for (auto settings : combinations()) {
      if (settings.of_linear.steps > 1) continue;  // a token has several values
      INFO(name_of(settings));
      settings.of_linear.skip = false, settings.of_linear.output_norm = settings.of_linear.output_gate = "none";
      settings.convolution.reset(), settings.of_linear.activation = "none";
      Layer const made = layer(settings);
      test::RecordedPass recorded({.weights = true, .rows = true});
      Tensor const x = some({2, length, width}, "x"), y = made(x, causal, recorded.pass);
      auto const records = recorded.records();
      REQUIRE(records.size() == 1);
      auto const parameter = [&](std::string const& name) { return *made.parameters.find("attention." + name); };
      Tensor const values = split_heads(linear(x, parameter("value.weight"), parameter("value.bias")), heads);
      Tensor const contexts = merge_heads(matmul(records[0].weights, values));
      CHECK(absolute_difference(linear(contexts, parameter("output.weight"), parameter("output.bias")), y) <= 1e-12);
      CHECK_FALSE(records[0].scores.defined());
      CHECK(records[0].state.shape() == Shape{2, heads, 4, 3});
    }
  }

  TEST_CASE("models of any layers: the same bits on any number of threads, and decoded as read at once") {
    std::vector<std::string> types{"scaled", "additive", "local-m"};
    for (auto const& variant : linear_variants()) types.push_back(variant.name);
    auto settings = stack(types, std::ssize(types));
    settings.attention.convolution = 3;
    dynamic_cast<LayerSettings&>(settings.pattern.list.at(0)).sees = 4;
    REQUIRE(settings.contradiction().value_or("") == "");
    Parameters parameters(3, DType::float64, test::wide(0.3));
    Gpt const model(parameters, settings, 11);
    Tensor const tokens = test::random_tokens({2, 37}, 11);
    Batch const batch{{"inputs", tokens}, {"targets", tokens}};
    test::check_threads({1, 2, 3, 5}, [&] {
      auto const found = test::results(model, parameters, batch);
      return Tensors{Tensor::of(found, {std::ssize(found)})};
    });
    NoGrad const quiet;
    Tensor const whole = model.logits(batch, {});
    auto const decoding = model.decode({}, {});
    for (Index i = 0; i < 37; ++i) {
      Tensor const scores = decoding->scores(reshape(slice(tokens, 1, i, i + 1), {2}));
      CHECK(absolute_difference(scores, reshape(slice(reshape(whole, {2, 37, 11}), 1, i, i + 1), {2, 11})) <= 1e-12);
    }
    decoding->keep(std::vector<Index>{1, 1, 0});
    Tensor const again = decoding->scores(Tensor::of(std::vector<Index>{4, 4, 4}, {3}));
    CHECK(again.rows(0, 1).to_vector() == again.rows(1, 1).to_vector());
  }

  TEST_CASE("contradictions are said, under the key where they stand") {
    CHECK(said(AttentionSettings(), [](auto& s) { s.of_linear.steps = 2; }).starts_with("steps: "));
    auto const linear = [](auto const& change) { return [change](auto& s) { s.from_word("deltanet"), change(s); }; };
    CHECK(said(AttentionSettings(), linear([](auto& s) { s.gate = true; })).starts_with("gate: "));
    CHECK(said(AttentionSettings(), linear([](auto& s) { s.scale = "learned"; })).starts_with("scale: "));
    CHECK(said(AttentionSettings(), linear([](auto& s) { s.of_linear.write = "step"; })).starts_with("write: "));
    CHECK(said(AttentionSettings(), linear([](auto& s) { s.of_linear.rank = 2; })).starts_with("rank: "));
    CHECK(said(AttentionSettings(), linear([](auto& s) { s.of_linear.skip = true, s.of_linear.steps = 2; })).starts_with("skip: "));
    auto const model = stack({"deltanet", "scaled"}, 4);
    CHECK(said(model, [](auto&) {}) == "");
    CHECK(said(model, [](auto& s) { s.layers = 3, s.pattern.last.from_word("additive"); }) == "");
    auto const three = stack({"deltanet", "scaled", "scaled"}, 8);
    CHECK(said(three, [](auto&) {}) == "layer_types: 3 types do not divide 8 layers, nor 7 and one that ends them");
    CHECK(said(three, [](auto& s) { s.layers = 7; }) == "");
    CHECK(said(model, [](auto& s) { s.position = "alibi"; }).starts_with("position: "));
    CHECK(said(model, [](auto& s) { s.pattern.list.items[0].position = "alibi"; }).starts_with("layer_types.0.position: "));
    CHECK(said(model, [](auto& s) { s.pattern.list.items[0].key_heads = 1; }).starts_with("layer_types.0.key_heads: "));
    CHECK(said(LayerSettings(), [](auto& s) { s.position = "learned"; }).starts_with("position: "));
  }
}
