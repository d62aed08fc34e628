// Attention over more keys than a tile has: the parts of softmax's rows make the reference's whole rows.

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/pair_formula.hpp"
#include "autograd/attention/row_statistics.hpp"
#include "tests/gradients.hpp"

TEST_SUITE("attention_tiles") {
  using namespace heed;
  using Tensors = std::vector<Tensor>;

  namespace {

  constexpr Index batch = 2, heads = 2, keys = 600;

  using Array = Tensor AttentionInputs::*;
  struct Extra {
    Array array;
    Shape shape;
  };
  struct Case {
    std::string name;
    AttentionForm form;
    std::vector<Extra> extras = {};
    Index queries = keys;
  };

  /// e = p tanh(s + α β) − p′ |i − j| / (20 + (i − j)²), and a cap.
  AttentionForm finished(Visibility const& visibility) {
    AttentionForm form{.visibility = visibility};
    form.finish = pair_finish([](auto s, auto const& at) {
      return at.parameter * tanh(s + at.query * at.key) - at.second_parameter * abs(at.distance) / (20.0 + at.distance * at.distance);
    });
    form.softcap = 2.0;
    return form;
  }

  std::vector<Case> cases() {
    Visibility const all{}, causal{.causal = true, .lengths = {}, .offset = 0};
    Visibility const padded{.causal = true, .lengths = Tensor::of(std::vector<Index>{520, 0}, {batch}), .offset = 0};
    Visibility const later{.causal = true, .lengths = {}, .offset = keys - 100},
        sliding{.causal = true, .lengths = {}, .offset = 0, .query_lengths = {}, .sees = 300};
    std::vector<Extra> const biases{{&AttentionInputs::relative, {heads, 2 * keys - 1}},
                                    {&AttentionInputs::near, {batch, keys, heads, 7}},
                                    {&AttentionInputs::of_row, {batch, heads, keys}},
                                    {&AttentionInputs::of_column, {batch, heads, keys}}};
    std::vector<Extra> const of_finish{{&AttentionInputs::parameter, {heads, 2}},
                                       {&AttentionInputs::of_query, {batch, heads, keys}},
                                       {&AttentionInputs::of_key, {batch, heads, keys}}};
    std::vector<Extra> const centres{{&AttentionInputs::centres, {batch, heads, keys, 1}}};
    std::vector<Case> out{
        {"all keys", {.visibility = all}, {}, 70},
        {"causal", {.visibility = causal}},
        {"later queries", {.visibility = later}, {}, 100},
        {"padded", {.visibility = padded}},
        {"sliding", {.visibility = sliding}},
        {"biases", {.visibility = causal}, biases},
        {"dropout", {.visibility = causal, .dropout = WeightDropout{0.3, Stream(1, "dropout")}}},
        {"Gaussian", {.visibility = causal, .gaussian = true, .deviation = 150}, centres},
        {"window", {.visibility = all, .window = 200, .gaussian = true, .deviation = 90}, centres},
        {"finish and cap", finished(causal), of_finish},
        {"shared keys", {.visibility = causal, .key_heads = 1}},
    };
    for (Case& each : out) each.form.heads = heads, each.form.scale = 0.5;
    return out;
  }

  AttentionInputs arranged(Case const& each, Tensors const& x) {
    AttentionInputs in{x[0], x[1], x[2]};
    for (std::size_t i = 0; i < each.extras.size(); ++i) in.*each.extras[i].array = x[3 + i];
    return in;
  }

  Tensors drawn(Case const& each) {
    std::vector<Shape> shapes{
        {batch, each.queries, 4 * heads}, {batch, keys, 4 * each.form.groups()}, {batch, keys, 3 * each.form.groups()}};
    for (Extra const& extra : each.extras) shapes.push_back(extra.shape);
    Tensors x;
    for (Shape const& shape : shapes) x.push_back(Tensor::normal(shape, Stream(7, "tiles").child(x.size()), DType::float64));
    x[0] = scale(x[0], 3).detach();  // the largest score of a row is anywhere
    if (each.form.gaussian) x[3] = scale(x[3] + Tensor::full({1}, 2, DType::float64), 150).detach();
    return x;
  }

  }  // namespace

  TEST_CASE("values and gradients are those of whole rows; their bits depend neither on threads, nor on whether rows are measured") {
    for (Case const& each : cases()) {
      INFO(each.name);
      Tensors const x = drawn(each);
      Tensors const expected =
          test::value_and_gradients([&](Tensors const& at) { return attention_reference(each.form, arranged(each, at)); }, x);
      auto const fused = [&](Tensors const& at) { return fused_attention(each.form, arranged(each, at)); };
      test::check_agree(test::value_and_gradients(fused, x), expected, 1e-11);
      if (each.form.window == 0)  // a key on a window's edge is in it or not by the rounding of its centre
        test::check_agree(test::value_and_gradients(fused, x, DType::float32), expected, 2e-4);

      test::check_threads({1, 2, 3}, [&] { return test::value_and_gradients(fused, x, DType::float32); });
      Tensor rows;
      Tensor const measured = fused_attention(each.form, arranged(each, x), &rows);
      CHECK(same_bits(measured, fused(x)));
      CHECK(rows.shape() == Shape{batch, heads, each.queries, row_statistics});
    }
  }

  TEST_CASE("no keys at all give zeros and zero gradients") {
    auto const fused = [](Tensors const& x) { return fused_attention({.heads = 2, .visibility = {}}, {x[0], x[1], x[2]}); };
    Shape const none{1, 0, 4};
    Tensors const found = test::value_and_gradients(
        fused, {Tensor::ones({1, 70, 4}, DType::float64), Tensor::zeros(none, DType::float64), Tensor::zeros(none, DType::float64)});
    for (std::size_t i : {0U, 1U}) CHECK(same_bits(found[i], Tensor::zeros({1, 70, 4}, DType::float64)));
  }

  TEST_CASE("scores of −∞ in a whole tile count as no keys, and one NaN is not lost") {
    AttentionForm const form{.heads = 1, .visibility = {}};
    Tensor const tokens = Tensor::normal({1, keys, 4}, Stream(1, "tokens"), DType::float64);
    Tensor bias = Tensor::zeros({1, 1, keys}, DType::float64);
    auto const column = bias.mutable_data<double>();
    for (Index j = 0; j < 300; ++j) column[j] = -std::numeric_limits<double>::infinity();
    AttentionInputs in{tokens, tokens, tokens};
    in.of_row = Tensor::zeros({1, 1, keys}, DType::float64), in.of_column = bias;
    CHECK(test::difference(fused_attention(form, in), attention_reference(form, in)) <= 1e-12);
    for (Index const j : {Index{5}, Index{400}, keys - 1}) {
      Tensor nan = Tensor::zeros({1, 1, keys}, DType::float64);
      nan.mutable_data<double>()[j] = std::numeric_limits<double>::quiet_NaN();
      in.of_column = nan;
      Tensor const context = fused_attention(form, in);
      CHECK(std::ranges::all_of(context.data<double>(), [](double c) { return std::isnan(c); }));
    }
  }
}
