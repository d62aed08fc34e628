// What is true of attention whatever its parameters: who may influence whom, what order means to it, what its weights come to.

#include "autograd/ops/operations.hpp"
#include "nn/models/blocks.hpp"
#include "tests/nn/variants.hpp"

TEST_SUITE("attention_properties") {
  using namespace heed;
  using test::absolute_difference, test::seen, test::some, test::Extents, test::Subject, test::Variant, test::variants;

  namespace {

  /// Spread parameters, so that every part of a variant has its say.
  Parameters wide(DType dtype = DType::float64) { return Parameters(3, dtype, test::wide()); }

  /// x [B, T, …] with its places in another order.
  Tensor reordered(Tensor const& x, std::vector<Index> const& order) {
    std::vector<Tensor> rows;
    for (Index const from : order) rows.push_back(slice(x, 1, from, from + 1));
    return concatenate(rows, 1);
  }

  /// The places before `from` as they are, those from there on another draw.
  Tensor changed_from(Tensor const& x, Index from) {
    Tensor const other = Tensor::normal(x.shape(), Stream(2, "changed"), x.dtype());
    return concatenate({slice(x, 1, 0, from), slice(other, 1, from, x.size(1))}, 1);
  }

  std::unique_ptr<Score> made_score(std::string const& name, Parameters& parameters, HeadShape const& shape,
                                    std::string const& scale = "rsqrt") {
    AttentionSettings settings;
    settings.scale = scale;
    return Registry<ScoreKind>::find(name)->make(Scope(parameters), settings, shape);
  }

  /// Softpick weighs scores above 0 alone, and a distance has none.
  bool reads_something(Variant const& variant) {
    if (variant.settings.align != "softpick") return true;
    Parameters parameters = wide();
    auto const score = made_score(variant.settings.score, parameters, {2, 4, 16}, variant.settings.scale);
    return max(test::scores_of(*score, some({2, 2, 9, 4}, "query"), some({2, 2, 9, 4}, "key"))).item() > 0;
  }

  }  // namespace

  TEST_CASE("every combination is accepted") {
    std::set<std::string> names;
    for (Variant variant : variants()) {
      CHECK(variant.settings.contradiction().value_or("") == "");
      names.insert(variant.name());
    }
    CHECK(names.size() == variants().size());
    CHECK(names.size() ==
          (Registry<ScoreKind>::all().size() + 4) * (Registry<AlignKind>::all().size() + 1) * Registry<PositionKind>::all().size());
  }

  TEST_CASE("a row under a causal mask never changes when the future does, to the bit") {
    Index const length = 9, first_changed = 5;
    for (Variant const& variant : variants()) {
      INFO(variant.name());
      for (DType const dtype : {DType::float64, DType::float32})
        for (double const window : {2.0, 50.0}) {
          Variant local = variant;
          local.settings.set("window", window);
          Subject const subject(local, {2, length, length, 2, 4, 3}, wide(dtype));
          Tensor const x = some({2, length, 8}, "x", dtype), value = some({2, length, 6}, "value", dtype);
          Tensor const y = changed_from(x, first_changed), other = changed_from(value, first_changed);
          Visibility const causal = seen(true, {}, window == 2 ? 4 : 0);
          auto const same = [&](Tensor const& a, Tensor const& b) {
            return slice(a, 1, 0, first_changed).to_vector() == slice(b, 1, 0, first_changed).to_vector();
          };
          CHECK(same(subject(x, x, value, causal), subject(y, y, other, causal)));
          CHECK(same(subject.reference(x, x, value, causal), subject.reference(y, y, other, causal)));
          if (reads_something(variant)) CHECK(absolute_difference(subject(x, x, value, causal), subject(y, y, other, causal)) > 0.1);
          // A decoder whose first query stands at 3 sees one key more with each.
          Visibility const later{.causal = true, .lengths = {}, .offset = 3, .query_lengths = {}, .sees = causal.sees};
          Tensor const q = slice(x, 1, 3, first_changed);
          CHECK(subject(q, x, value, later).to_vector() == subject(q, y, other, later).to_vector());
        }
    }
  }

  TEST_CASE("what stands behind a sequence's end never changes its rows, to the bit") {
    for (Variant const& variant : variants()) {
      INFO(variant.name());
      Subject const subject(variant, {2, 4, 7, 2, 4, 3}, wide());
      Tensor const q = some({2, 4, 8}, "query"), k = some({2, 7, 8}, "key"), v = some({2, 7, 6}, "value");
      Tensor const other_k = changed_from(k, 5), other_v = changed_from(v, 5);
      for (Visibility const& padded : {seen(false, {5, 3}), seen(false, {5, 3}, 3)}) {
        CHECK(subject(q, k, v, padded).to_vector() == subject(q, other_k, other_v, padded).to_vector());
        CHECK(subject.reference(q, k, v, padded).to_vector() == subject.reference(q, other_k, other_v, padded).to_vector());
      }
    }
  }

  TEST_CASE("a sliding window: a query reads what it would if there were no other keys") {
    Index const length = 9;
    Tensor const q = some({2, length, 8}, "query"), k = some({2, length, 8}, "key"), v = some({2, length, 6}, "value");
    std::set<std::string> const by_distance{"none", "t5", "alibi", "kerple", "shaw"};
    for (Variant variant : variants()) {
      // A centre of local_p and a key of location are places in the whole.
      if (!by_distance.contains(variant.position) || variant.settings.align == "local_p" || variant.settings.score == "location") continue;
      INFO(variant.name());
      variant.settings.set("window", 2.0);
      Subject const subject(variant, {2, length, length, 2, 4, 3}, wide());
      for (bool const causal : {true, false})
        for (Index const sees : {1, 2, 5}) {
          Tensor const whole = subject(q, k, v, seen(causal, {}, sees));
          for (Index i = 0; i < length; ++i) {
            Index const first = std::max<Index>(i - sees + 1, 0), last = causal ? i + 1 : std::min(i + sees, length);
            Visibility const alone{.causal = causal, .lengths = {}, .offset = i - first};
            Tensor const read = subject(slice(q, 1, i, i + 1), slice(k, 1, first, last), slice(v, 1, first, last), alone);
            CHECK(absolute_difference(slice(whole, 1, i, i + 1), read) <= 1e-12);
          }
        }
    }
  }

  TEST_CASE("a sliding window as long as the sequence changes no bit of value and gradients") {
    for (Variant const& variant : variants()) {
      INFO(variant.name());
      Subject const subject(variant, {2, 70, 70, 2, 4, 3, 70}, wide(DType::float32));
      auto const inputs = test::leaves({some({2, 70, 8}, "query"), some({2, 70, 8}, "key"), some({2, 70, 6}, "value")}, DType::float32);
      for (bool const causal : {true, false}) {
        auto const found = [&](Index sees) {
          return test::with_gradients({subject(inputs[0], inputs[1], inputs[2], seen(causal, {70, 66}, sees))}, inputs);
        };
        auto const expected = found(0);
        for (Index const sees : {Index{70}, std::numeric_limits<Index>::max()}) test::check_agree(found(sees), expected, 0);
      }
    }
  }

  TEST_CASE("the scores of a whole GPT never change when later tokens do, to the bit") {
    std::vector<Index> const tokens{1, 4, 2, 0, 3, 3, 1, 0}, other{1, 4, 2, 0, 3, 2, 4, 4};
    for (Variant const& variant : variants()) {
      INFO(variant.name());
      Parameters parameters = wide();
      auto settings = test::small_stack<GptSettings>("scaled", variant.position, 8);
      settings.attention = variant.settings;
      Gpt const gpt(parameters, settings, 5);
      auto const scores = [&](std::vector<Index> const& row) { return gpt.logits({{"inputs", Tensor::of(row, {1, 8})}}, {}); };
      Tensor const before = scores(tokens), after = scores(other);
      CHECK(slice(before, 1, 0, 5).to_vector() == slice(after, 1, 0, 5).to_vector());
      if (reads_something(variant)) CHECK(slice(before, 1, 5, 6).to_vector() != slice(after, 1, 5, 6).to_vector());
    }
  }

  TEST_CASE("a record says which parts of a batch attend to which, and has the steps of a decoder one after the other") {
    auto parameters = wide();
    Attention const attention(Scope(parameters).at("decoder.attention"), {}, {2, 3, 8}, 0, nullptr, {"inputs", "source"});
    test::RecordedPass const recorded({.weights = true});
    Tensor const query = some({1, 1, 6}, "query"), keys = some({1, 5, 6}, "keys");
    for (Index const step : {0, 1, 4}) attention(query, keys, keys, {.causal = false, .lengths = {}, .offset = step}, recorded.pass);
    auto const records = recorded.records();
    REQUIRE(records.size() == 1);  // the steps are one after the other
    CHECK(records[0].layer == "decoder.attention");
    CHECK(records[0].of.queries == "inputs");
    CHECK(records[0].of.keys == "source");
    CHECK(records[0].visibility.offset == 0);
    CHECK(records[0].weights.shape() == Shape{1, 2, 3, 5});
  }

  TEST_CASE("without positions attention is permutation-equivariant, but where a definition speaks of places") {
    std::vector<Index> const order{3, 0, 5, 1, 4, 2};
    // location scores the places themselves, and the windows of local_m and local_p lie around places.
    std::set<std::string> const of_positions{"location", "local_m", "local_p"};
    for (Variant const& variant : variants()) {
      if (variant.position != "none") continue;
      INFO(variant.name());
      Variant narrow = variant;
      narrow.settings.set("window", 1.5);
      Subject const subject(narrow, {2, 6, 6, 2, 4, 3}, wide());
      Tensor const q = some({2, 6, 8}, "query"), k = some({2, 6, 8}, "key"), v = some({2, 6, 6}, "value");
      Tensor const straight = reordered(subject(q, k, v, {}), order);
      double const turned = absolute_difference(subject(reordered(q, order), reordered(k, order), reordered(v, order), {}), straight);
      double const keys = absolute_difference(subject(q, reordered(k, order), reordered(v, order), {}), subject(q, k, v, {}));
      if (of_positions.contains(variant.settings.score) || of_positions.contains(variant.settings.align)) {
        CHECK(turned > 0.01);
      } else {
        CHECK(turned <= 1e-12);
        CHECK(keys <= 1e-12);
      }
    }
  }

  TEST_CASE("a sinusoid's dot product depends on the offset only") {
    for (Index const width : {2, 16, 64}) {
      CAPTURE(width);
      Tensor const table = sinusoids(0, 400, width, DType::float64);
      Tensor const products = matmul(table, table, false, true);
      Tensor const first = slice(slice(products, 0, 0, 399), 1, 0, 399), next = slice(slice(products, 0, 1, 400), 1, 1, 400);
      CHECK(absolute_difference(first, next) <= 1e-11);
      CHECK(products.at(0) == doctest::Approx(static_cast<double>(width) / 2).epsilon(1e-14));
      CHECK(std::abs(products.at(1) - products.at(0)) > 0.1);
      CHECK(absolute_difference(sinusoids(123, 40, width, DType::float64), table.rows(123, 40)) == 0);
    }
  }

  TEST_CASE("rotary scores depend on the offset only, for scores made of lengths and of q·k") {
    // A matrix or a tanh between query and key sees the turned vectors themselves.
    std::set<std::string> const of_products{"dot", "scaled_dot", "cosine", "gaussian"};
    Index const length = 20, heads = 2, width = 4;
    Parameters none(1, DType::float64);
    auto const position = make_position("rotary", Scope(none), {length, heads * width, heads});
    auto const rotary = position->in_attention(Scope(none), heads, width);
    auto const everywhere = [&](char const* name) {  // the same vector at every place
      return split_heads(rotary->rotate(expand(some({1, 1, heads * width}, name), {1, length, heads * width}), 7), heads);
    };
    for (auto const& kind : Registry<ScoreKind>::all())
      for (std::string const scale : {"rsqrt", "inverse", "none", "learned", "2.5"}) {
        if (kind.name != "scaled_dot" && scale != "rsqrt") continue;
        INFO("kind.name ", kind.name, ", scale ", scale);
        Parameters parameters = wide();
        auto const score = made_score(kind.name, parameters, {heads, width, length}, scale);
        Tensor const e = test::scores_of(*score, everywhere("query"), everywhere("key"));
        double const along =
            absolute_difference(slice(slice(e, 2, 1, length), 3, 1, length), slice(slice(e, 2, 0, length - 1), 3, 0, length - 1));
        double const across = absolute_difference(slice(e, 3, 1, length), slice(e, 3, 0, length - 1));
        CHECK(across > 0.01);
        if (of_products.contains(kind.name))
          CHECK(along <= 1e-11);
        else
          CHECK(along > 0.01);
      }
  }

  TEST_CASE("biases by distance are their definitions") {
    auto const biases = [](std::string const& name, Parameters& parameters, Index heads, Tensor const& query, Index keys,
                           Visibility const& visibility) {
      Index const width = query.size(3);
      auto const position = make_position(name, Scope(parameters), {64, heads * width, heads});
      return position->in_attention(Scope(parameters), heads, width)->bias(query, keys, visibility);
    };
    Visibility const both, past{.causal = true, .lengths = {}, .offset = 5};
    Tensor const query = some({1, 4, 3, 2}, "query");
    auto const element = [](Tensor const& b, Index h, Index i, Index j) { return b.at((h * b.size(2) + i) * b.size(3) + j); };
    Parameters parameters = wide();
    SUBCASE("alibi: slopes 1/4, 1/16, 1/64, 1/256 of four heads") {
      Tensor const near = biases("alibi", parameters, 4, query, 8, both), later = biases("alibi", parameters, 4, query, 8, past);
      CHECK(element(near, 0, 2, 2) == 0);
      CHECK(element(near, 0, 0, 7) == -7.0 / 4);
      CHECK(element(near, 1, 2, 0) == -2.0 / 16);
      CHECK(element(near, 3, 1, 4) == -3.0 / 256);
      CHECK(element(later, 2, 0, 0) == -5.0 / 64);  // the first query stands at 5
      CHECK(element(later, 2, 2, 7) == 0);
    }
    SUBCASE("t5: the bucket's entry of each head") {
      Parameters again = wide();
      Tensor const near = biases("t5", parameters, 4, query, 8, both);
      Tensor const later = biases("t5", again, 4, query, 8, past);
      Tensor const& table = *parameters.find("relative.bias");
      CHECK(element(near, 1, 0, 0) == table.at(0 * 4 + 1));
      CHECK(element(near, 1, 0, 1) == table.at(17 * 4 + 1));
      CHECK(element(near, 2, 2, 0) == table.at(2 * 4 + 2));
      CHECK(element(later, 3, 0, 0) == table.at(5 * 4 + 3));
      CHECK(element(later, 3, 2, 7) == table.at(0 * 4 + 3));
    }
    SUBCASE("t5: the buckets") {
      // Exact up to 15; then 16 + ⌊16 ln(n/16)/ln 8⌋, at most 31.
      std::map<Index, Index> const of_the_past{{0, 0},    {-1, 1},   {-15, 15},  {-16, 16},  {-18, 16},   {-19, 17},
                                               {-32, 21}, {-64, 26}, {-127, 31}, {-128, 31}, {-5000, 31}, {3, 0}};
      for (auto const& [distance, bucket] : of_the_past) CHECK(t5_bucket(distance, true) == bucket);
      // Half of them for each side: exact up to 7; then 8 + ⌊8 ln(n/8)/ln 16⌋, at most 15; 16 more ahead.
      std::map<Index, Index> const of_both_sides{{0, 0},     {-1, 1}, {-7, 7}, {-8, 8}, {-16, 10}, {-40, 12}, {-128, 15},
                                                 {-900, 15}, {1, 17}, {7, 23}, {8, 24}, {127, 31}, {900, 31}};
      for (auto const& [distance, bucket] : of_both_sides) CHECK(t5_bucket(distance, false) == bucket);
    }
    SUBCASE("shaw: the query's product with the vector of the distance, clipped at 16") {
      Tensor const b = biases("shaw", parameters, 4, query, 30, past);
      Tensor const& table = *parameters.find("relative.key");
      auto const product = [&](Index h, Index i, Index row) {
        Index const q = (h * 3 + i) * 2;
        return (query.at(q) * table.at(row * 2) + query.at(q + 1) * table.at(row * 2 + 1)) / std::sqrt(2.0);
      };
      CHECK(element(b, 0, 0, 5) == doctest::Approx(product(0, 0, 16)).epsilon(1e-14));
      CHECK(element(b, 2, 1, 2) == doctest::Approx(product(2, 1, 12)).epsilon(1e-14));
      CHECK(element(b, 3, 0, 20) == doctest::Approx(product(3, 0, 31)).epsilon(1e-14));
      CHECK(element(b, 3, 2, 29) == doctest::Approx(product(3, 2, 32)).epsilon(1e-14));
    }
  }

  TEST_CASE("local_p with a wide window is softmax") {
    std::vector<Visibility> const visibilities{{}, {.causal = true, .lengths = {}, .offset = 2}, seen(true, {4, 0})};
    Tensor const q = some({2, 5, 8}, "query"), k = some({2, 7, 8}, "key"), v = some({2, 7, 6}, "value");
    for (Variant const& variant : variants()) {
      if (variant.settings.align != "local_p") continue;
      INFO(variant.name());
      Variant local = variant, global = variant;
      local.settings.set("window", 1e9);  // D, and σ = D/2
      global.settings.align = "softmax";
      global.settings.set("windowed", true);
      Extents const extents{2, 5, 7, 2, 4, 3};
      Subject const by_local(local, extents, wide()), by_softmax(global, extents, wide());
      for (Visibility const& visibility : visibilities) {
        CHECK(absolute_difference(by_local(q, k, v, visibility), by_softmax(q, k, v, visibility)) <= 1e-12);
        CHECK(absolute_difference(by_local.reference(q, k, v, visibility), by_softmax.reference(q, k, v, visibility)) <= 1e-12);
      }
      local.settings.set("window", 3.0);
      CHECK(absolute_difference(Subject(local, extents, wide())(q, k, v, {}), by_softmax(q, k, v, {})) > 0.01);
    }
  }

  TEST_CASE("additive with the vector 0 is uniform over the visible keys") {
    AttentionSettings settings;
    settings.from_word("additive");
    Parameters parameters = Parameters::given({{"score.vector", Tensor::zeros({2, 4}, DType::float64)}}, DType::float64);
    Attention const attention(Scope(parameters), settings, {2, 4, 6}, 0);
    Tensor const x = some({2, 6, 8}, "x"), v = some({2, 6, 6}, "value");
    Tensor const running = cumsum(v, 1) / reshape(Tensor::arange(6, DType::float64) + 1, {1, 6, 1});
    CHECK(absolute_difference(attention(x, x, v, seen(true), {}), running) <= 1e-14);
    CHECK(absolute_difference(test::by_reference(attention, x, x, v, seen(true)), running) <= 1e-14);
  }

  TEST_CASE("rows of weights: not negative, 0 where nothing is seen, sums of one where the align is a distribution") {
    Tensor const q = scale(some({3, 6, 8}, "query"), 2), k = scale(some({3, 6, 8}, "key"), 2);
    for (Variant const& variant : variants()) {
      INFO(variant.name());
      std::string const& align = variant.settings.align;
      Subject const subject(variant, {3, 6, 6, 2, 4, 3}, wide());
      for (Visibility const& visibility :
           {seen(true, {6, 4, 0}), seen(false, {6, 4, 0}), seen(true, {6, 4, 0}, 2), seen(false, {6, 4, 0}, 3)}) {
        Tensor const weights = subject.weights(q, k, visibility);
        REQUIRE(weights.shape() == Shape{3, 2, 6, 6});
        Tensor const visible = expand(visibility.mask(6, 6, DType::float64), weights.shape()), sums = sum(weights, {-1});
        CHECK(min(weights).item() >= 0);
        CHECK(sum(weights * (1 - visible)).item() == 0);
        // A row that sees nothing sums to 0.
        if (test::kind_of<Align>(align).rows_are_distributions) CHECK(absolute_difference(sums, max(visible, {-1})) <= 1e-14);
        if (align == "local_p") CHECK(max(sums).item() <= 1 + 1e-14);
        double const all_visible = sum(visible).item(), zeros = all_visible - sum(weights > 0).item();
        if (visibility.sees == 0 && (align == "sparsemax" || align == "entmax15")) CHECK(zeros > all_visible / 20);
        if (align == "softmax" || align == "sigmoid") CHECK(zeros == 0);
      }
    }
  }

  TEST_CASE("sparsemax and entmax15 are what their definitions say of every row") {
    // e_j − a_j, and e_j/2 − √a_j, are one threshold τ on the support, and what is outside lies below it.
    Tensor const scores = scale(some({1, 1, 200, 9}, "scores"), 2);
    Visibility const visibility{.causal = true, .lengths = {}, .offset = 3};
    double const infinity = std::numeric_limits<double>::infinity();
    for (std::string const name : {"sparsemax", "entmax15"}) {
      CAPTURE(name);
      Parameters none(1, DType::float64);
      auto const align = Registry<AlignKind>::find(name)->make(Scope(none), {}, {1, 1, 9});
      Tensor const weights = (*align)(scores, scores, visibility);
      Tensor const tau = name == "sparsemax" ? scores - weights : scale(scores, 0.5) - sqrt(weights);
      Tensor const highest = max(masked_fill(tau, 1 - visibility.mask(200, 9, DType::float64), -infinity), {-1});
      Tensor const lowest = min(masked_fill(tau, 1 - (weights > 0), infinity), {-1});
      CHECK(max(highest - lowest).item() <= 1e-13);
    }
  }

  TEST_CASE("a local window weighs no key that is out of it, and what is in it as softmax does") {
    Tensor const x = some({1, 9, 8}, "x");
    for (Variant const& variant : variants()) {
      if (variant.settings.align != "local_m") continue;
      INFO(variant.name());
      Variant local = variant, global = variant;
      local.settings.set("window", 2.0);
      global.settings.align = "softmax";
      Extents const extents{1, 9, 9, 2, 4, 3};
      Tensor const narrow = Subject(local, extents, wide()).weights(x, x, {}), whole = Subject(global, extents, wide()).weights(x, x, {});
      Tensor const inside = window_mask(reshape(Tensor::arange(9, DType::float64), {1, 1, 9, 1}), 2, {}, 9);
      CHECK(sum(inside).item() == 9 + 8 * 2 + 7 * 2);
      Tensor const kept = whole * inside;
      CHECK(absolute_difference(narrow, kept / sum(kept, {-1}, true)) <= 1e-13);
    }
  }
}
