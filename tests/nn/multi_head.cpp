// What attention with projections does beside score, align and read: grouped keys, norms of queries and keys, caps, gates, forget gates,
// and differences of two maps.

#include "autograd/ops/shape.hpp"
#include "nn/models/bert.hpp"
#include "tests/nn/variants.hpp"

TEST_SUITE("multi_head") {
  using namespace heed;
  using test::absolute_difference, test::said, test::some, test::Tensors;

  namespace {

  struct Option {
    std::string name;
    AttentionSettings settings;
    Index key_heads = 4;
    std::string position = "none";
    Index sees = 0;
  };

  /// Each key alone, together with others, and with scores and aligns of their own parameters.
  std::vector<Option> options() {
    std::vector<Option> all;
    auto const add = [&](std::string const& name, Index key_heads, std::string const& position, auto const& change) {
      Option option{name, {}, key_heads, position};
      change(option.settings);
      REQUIRE(option.settings.contradiction().value_or("") == "");
      all.push_back(option);
    };
    add("plain", 4, "none", [](auto&) {});
    add("softcap", 4, "t5", [](auto& s) { s.softcap = 0.7; });
    add("query_key_norm", 4, "rotary", [](auto& s) { s.query_key_norm = "rms"; });
    add("gate", 4, "none", [](auto& s) { s.gate = true; });
    add("forget", 4, "none", [](auto& s) { s.forget = true; });
    add("differential", 4, "none", [](auto& s) { s.differential = true; });
    add("grouped", 2, "none", [](auto&) {});
    add("one group", 1, "rotary", [](auto& s) { s.score = "additive"; });
    add("grouped, local", 2, "none", [](auto& s) { s.score = "general", s.align = "local_p", s.set("window", 2.3); });
    add("differential sink, grouped", 2, "rotary", [](auto& s) { s.differential = s.forget = true, s.align = "sink"; });
    add("all", 2, "kerple",
        [](auto& s) { s.differential = s.forget = s.gate = true, s.softcap = 2, s.query_key_norm = "rms", s.align = "ssmax"; });
    add("location", 2, "none", [](auto& s) { s.score = "location"; });
    for (char const* const position : {"rotary", "t5", "shaw", "fire"}) add(position, 4, position, [](auto& s) { s.forget = true; });
    for (std::size_t i = 0, plain = all.size(); i < plain; ++i) {
      Option option = all[i];
      option.name += ", sliding";
      option.sees = i % 4 == 0 ? 1 : 3;
      all.push_back(option);
    }
    return all;
  }

  constexpr Index width = 16, heads = 4, length = 9;

  /// A layer of one option with parameters of its own, or given ones.
  struct Layer {
    Layer(Option const& option, Parameters given)
        : parameters(std::move(given)),
          position(make_position(option.position, Scope(parameters), {length, width, heads})),
          attention(Scope(parameters).at("attention"), option.settings, {width, heads, 2, 3, length, option.key_heads, 1, 1, option.sees},
                    true, 0, 1, position.get()) {}
    static Parameters spread(DType dtype = DType::float64) { return Parameters(7, dtype, test::wide(0.4)); }
    Tensor operator()(Tensor const& x, Visibility const& sees, Pass const& pass = {}) const { return attention(x, x, sees, pass, 0); }

    Parameters parameters;
    std::unique_ptr<Position> position;
    MultiHead attention;
  };

  Visibility const causal{.causal = true, .lengths = {}, .offset = 0};

  /// The option's layer as a function of x and its parameters, and these, moved from where they start.
  std::pair<TensorFunction, Tensors> function(Option const& option, Visibility const& sees) {
    auto const drawn = std::make_shared<Layer>(option, Layer::spread());
    Tensors at{some({2, length, width}, "x")};
    for (auto const& [name, value] : drawn->parameters.all()) at.push_back(value.detach() + scale(some(value.shape(), name), 0.2));
    return {[=](Tensors const& x) { return Layer(option, test::with_values(drawn->parameters, std::span(x).subspan(1)))(x[0], sees); }, at};
  }

  /// What a layer of the option gives when the named parameters are all of one value.
  Tensor with(Option const& option, std::vector<std::pair<std::string, double>> const& changes, Tensor const& x) {
    Layer layer(option, Layer::spread());
    for (auto const& [name, value] : changes) {
      REQUIRE(layer.parameters.find(name) != nullptr);
      Tensor writable = *layer.parameters.find(name);
      std::ranges::fill(writable.mutable_data<double>(), value);
    }
    return layer(x, causal);
  }

  Option changed(auto const& change) {
    Option option;
    change(option.settings);
    return option;
  }

  }  // namespace

  TEST_CASE("derivatives of both orders are those of finite differences, by the kernels and composed") {
    for (Option const& option : options()) {
      INFO(option.name);
      Visibility padded = causal;
      padded.lengths = Tensor::of(std::vector<Index>{length, 0}, {2});
      for (Visibility const& sees : {causal, padded}) {
        auto const [f, at] = function(option, sees);
        test::check_ok(gradcheck(f, at, 1e-7, 1e-4, 12));
        test::check_ok(gradgradcheck(f, at, 1e-6, 1e-4, 6));
        Tensor const fused = f(at);
        ReferenceAttention const composed;
        CHECK(absolute_difference(fused, f(at)) <= 1e-13);
      }
    }
  }

  TEST_CASE_FIXTURE(NoGrad, "read token by token from a cache, it is the same, and the cache holds the groups alone") {
    auto const known = [](Tensor const& x) { return reshape(masked_fill(x, not_equal(x, x), -1), {-1}); };  // NaN: unknown
    for (Option const& option : options())
      for (std::vector<Index> const& going : {std::vector<Index>{0}, std::vector<Index>{1, 0, 1}}) {
        INFO(option.name);
        Layer const layer(option, Layer::spread());
        Tensor const x = slice(some({2, length, width}, "x"), 0, 0, going.size() == 1 ? 1 : 2), whole = layer(x, causal);
        test::RecordedPass const recorded({.weights = true, .rows = true}), at_once({.weights = true, .rows = true});
        layer(x, causal, at_once.pass);
        KeyValueCache cache;
        cache.layers.resize(1);
        Pass pass = recorded.pass;
        pass.decoding.cache = &cache;
        Index past = 0;
        auto const check_read = [&](Index n, Tensor const& from, Tensor const& expected) {
          Visibility const sees{.causal = true, .lengths = {}, .offset = past};
          CHECK(absolute_difference(layer(slice(from, 1, past, past + n), sees, pass), slice(expected, 1, past, past + n)) <= 1e-13);
          past += n;
        };
        for (Index const n : {2, 1, 1, 1}) check_read(n, x, whole);
        for (std::size_t map = 0; map < recorded.records().size(); ++map) {
          AttentionRecord const steps = recorded.records()[map], all = at_once.records()[map];
          CHECK(absolute_difference(steps.weights, slice(slice(all.weights, 2, 0, past), 3, 0, past)) <= 1e-13);
          CHECK(absolute_difference(known(steps.rows[0]), known(slice(all.rows[0], 2, 0, past))) <= 1e-12);
        }
        cache.keep(going);
        pass.watching = {};
        while (past < length) check_read(1, take(x, going), take(whole, going));
        CHECK(cache.layers[0].key.dropped() == (option.sees > 0 ? length - option.sees : 0));
        Projected const kept = layer.attention.project(x, 0);
        CHECK(kept.key.size(2) == (option.settings.differential ? 2 : 1) * option.key_heads * 2);
        CHECK(kept.value.size(2) == option.key_heads * 3);
      }
  }

  TEST_CASE("what comes later changes nothing, to the bit") {
    for (Option const& option : options()) {
      INFO(option.name);
      Layer const layer(option, Layer::spread());
      Tensor const x = some({2, length, width}, "x");
      Tensor const other = concatenate({slice(x, 1, 0, 3), some({2, length - 3, width}, "other")}, 1);
      CHECK(slice(layer(x, causal), 1, 0, 3).to_vector() == slice(layer(other, causal), 1, 0, 3).to_vector());
    }
  }

  TEST_CASE("groups of keys: the same as heads whose keys and values are equal") {
    Layer const few({"", {}, 2}, Layer::spread());
    std::vector<std::pair<std::string, Tensor>> given;
    for (auto const& [name, value] : few.parameters.all()) {
      if (name.find("key") == std::string::npos && name.find("value") == std::string::npos) {
        given.emplace_back(name, value);
        continue;
      }
      Index const each = value.size(0) / 2;
      Tensor const a = slice(value, 0, 0, each), b = slice(value, 0, each, 2 * each);
      given.emplace_back(name, concatenate({a, a, b, b}, 0));
    }
    Tensor const x = some({2, length, width}, "x");
    CHECK(absolute_difference(few(x, causal), Layer({}, Parameters::given(given, DType::float64))(x, causal)) <= 1e-14);
  }

  TEST_CASE("limits: a wide cap, an open gate, a gate that forgets nothing change nothing") {
    Tensor const x = some({2, length, width}, "x");
    Tensor const plain = with({}, {}, x);
    CHECK(absolute_difference(with(changed([](auto& s) { s.softcap = 1e8; }), {}, x), plain) <= 1e-13);
    CHECK(absolute_difference(with(changed([](auto& s) { s.softcap = 0.5; }), {}, x), plain) > 1e-3);
    auto const gated = changed([](auto&s) { s.gate = true; }), forgetting = changed([](auto&s) { s.forget = true; });
    CHECK(absolute_difference(with(gated, {{"attention.gate.weight", 0}, {"attention.gate.bias", 50}}, x), plain) <= 1e-13);
    CHECK(absolute_difference(with(forgetting, {{"attention.forget.weight", 0}, {"attention.forget.bias", 50}}, x), plain) <= 1e-13);
    CHECK(absolute_difference(with(forgetting, {{"attention.forget.weight", 0}, {"attention.forget.bias", 1}}, x), plain) > 1e-3);
  }

  TEST_CASE("forget: with nothing kept, each place reads itself alone") {
    Option const forgetting = changed([](auto& s) { s.forget = true; });
    Tensor const x = some({2, length, width}, "x");
    Tensor const read = with(forgetting, {{"attention.forget.weight", 0}, {"attention.forget.bias", -60}}, x);
    for (Index i = 0; i < length; ++i)
      CHECK(absolute_difference(slice(read, 1, i, i + 1), with(forgetting, {}, slice(x, 1, i, i + 1))) <= 1e-12);
  }

  TEST_CASE("query_key_norm: the length of what is projected does not matter") {
    Option const normed = changed([](auto& s) { s.query_key_norm = "rms"; });
    Tensor const x = some({2, length, width}, "x");
    auto const scaled_by = [&](double factor) {
      Layer other(normed, Layer::spread());
      for (auto const& [name, value] : other.parameters.all()) {
        Tensor writable = value;
        if (name.find("query.") == std::string::npos && name.find("key.") == std::string::npos) continue;
        for (double& element : writable.mutable_data<double>()) element *= factor;
      }
      return other(x, causal);
    };
    CHECK(absolute_difference(scaled_by(1000), scaled_by(1e6)) <= 1e-6);  // but for the 1e-5 under the root
    CHECK(absolute_difference(with({}, {}, x), with(normed, {}, x)) > 1e-3);
  }

  TEST_CASE("differential: λ starts at 0.8 − 0.6 e^{−0.3 layer} plus what its vectors say; equal maps leave 1 − λ of one") {
    Option const two = changed([](auto& s) { s.differential = true; });
    Layer layer(two, Layer::spread());
    test::RecordedPass const recorded({.weights = true});
    layer(some({2, length, width}, "x"), causal, recorded.pass);
    auto const maps = recorded.records();
    REQUIRE(maps.size() == 2);
    CHECK(maps[0].layer == "attention.first");
    CHECK(maps[1].layer == "attention.second");
    CHECK(maps[0].weights.shape() == Shape{2, heads, length, length});
    CHECK(absolute_difference(maps[0].weights, maps[1].weights) > 1e-3);
    CHECK(layer.parameters.find("attention.query.weight")->shape() == Shape{heads * 2 * 2, width});
    // The norm takes a context's length away: what is left is its direction times √d_v (1 − λ₀).
    double const start = 0.8 - 0.6 * std::exp(-0.3);
    Tensor const x = scale(some({1, 1, width}, "x"), 100);
    Tensor const at_start = with(two, {{"attention.lambda.query1", 0}, {"attention.lambda.query2", 0}}, x);
    Tensor const value = reshape(layer.attention.project(x, 0).value, {heads, 3});
    Tensor const direction = value / sqrt(mean(value * value, {1}, true));
    Tensor const expected = linear(reshape(scale(direction, 1 - start), {1, heads * 3}), *layer.parameters.find("attention.output.weight"),
                                   *layer.parameters.find("attention.output.bias"));
    CHECK(absolute_difference(reshape(at_start, {1, width}), expected) <= 1e-4);
  }

  TEST_CASE("what has no meaning is refused, saying why") {
    CHECK(said(StackSettings(), [](auto& s) { s.key_heads = 3; }) == "key_heads: 3 groups do not divide 4 heads");
    CHECK(said(StackSettings(), [](auto& s) { s.position = "fire", s.attention.forget = true; }) == "");
    CHECK(said(BertSettings(), [](auto& s) { s.position = "fire"; }) ==
          "position: 'fire' needs causal attention, and this attention is not");
    CHECK(said(BertSettings(), [](auto& s) { s.attention.forget = true; }).starts_with("attention.forget: needs causal attention"));
    CHECK(said(StackSettings(), [](auto& s) { s.width = 12, s.attention.differential = true; }).starts_with("heads: two maps of 4 heads"));
    CHECK(said(AttentionSettings(), [](auto& s) { s.read = "hard", s.differential = true; }).starts_with("differential: "));
    CHECK(said(AttentionSettings(), [](auto&) {}) == "");
  }

  TEST_CASE("rotary: a linear scaling divides positions, ntk leaves the fastest pair alone and turns the slowest by the factor") {
    auto const turned = [](std::string const& kind, double factor, Index offset) {
      PositionChoice choice("rotary");
      for (Field& field : choice.settings->fields())
        if (field.name == "scaling")
          for (Field& inner : std::get<Settings*>(field.target)->fields()) {
            if (inner.name == "kind") *std::get<std::string*>(inner.target) = kind;
            if (inner.name == "factor") *std::get<double*>(inner.target) = factor;
          }
      Parameters none(1, DType::float64);
      auto const position = make_position(choice, Scope(none), {16, 8, 1});
      return position->in_attention(Scope(none), 1, 8)->rotate(Tensor::ones({1, 1, 8}, DType::float64), offset);
    };
    CHECK(absolute_difference(turned("linear", 4, 12), turned("none", 1, 3)) <= 1e-14);
    CHECK(absolute_difference(turned("ntk", 4, 12), turned("none", 1, 12)) > 1e-3);
    CHECK(absolute_difference(slice(turned("ntk", 4, 12), 2, 0, 2), slice(turned("none", 1, 12), 2, 0, 2)) == 0);
    CHECK(absolute_difference(slice(turned("ntk", 4, 12), 2, 6, 8), slice(turned("none", 1, 3), 2, 6, 8)) <= 1e-12);
  }
}
