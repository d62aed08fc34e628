// Dropout on attention's weights, which the fused kernels draw for themselves; and what these kernels promise: the same bits on any number
// of threads, and memory in proportion to the length.

#include "autograd/ops/operations.hpp"
#include "tests/nn/variants.hpp"

TEST_SUITE("attention_dropout") {
  using namespace heed;
  using test::difference, test::seen, test::training, test::Extents, test::Tensors, test::Variant, test::variants;

  namespace {

  Tensor leaf(Shape const& shape, char const* name, DType dtype) { return test::some(shape, name, dtype).set_requires_grad(); }

  /// Self-attention of one variant with dropout on its weights.
  struct Layer {
    Layer(Variant const& variant, Extents const& e, double dropout, DType dtype)
        : parameters(5, dtype, test::wide()),
          position(make_position(variant.position, Scope(parameters), {e.context, e.heads * e.width, e.heads})),
          attention(Scope(parameters).at("attention"), variant.settings, {e.heads, e.width, e.context}, dropout, position.get()),
          query(leaf({e.batch, e.queries, e.heads * e.width}, "query", dtype)),
          key(leaf({e.batch, e.keys, e.heads * e.width}, "key", dtype)),
          value(leaf({e.batch, e.keys, e.heads * e.value_width}, "value", dtype)) {}

    Tensor operator()(Visibility const& visibility) const { return attention(query, key, value, visibility, training()); }
    Tensors inputs() const {
      Tensors all{query, key, value};
      for (auto const& each : parameters.all()) all.push_back(each.second);
      return all;
    }
    /// The contexts, and the gradients of a random projection of them.
    Tensors value_and_gradients(Visibility const& visibility) const { return test::with_gradients({(*this)(visibility)}, inputs()); }

    Parameters parameters;
    std::unique_ptr<Position> position;
    Attention attention;
    Tensor query, key, value;
  };

  }  // namespace

  TEST_CASE("dropout by the kernels is dropout of the composed path, in value and first derivatives, for every variant") {
    for (Variant variant : variants()) {
      INFO(variant.name());
      variant.settings.set("window", 2.5);
      for (bool const causal : {true, false})
        for (auto const& each : {std::pair{DType::float64, 1e-12}, std::pair{DType::float32, 5e-5}}) {
          Layer const layer(variant, {2, 7, 7, 2, 4, 3}, 0.3, each.first);
          for (Index const sees : {0, 3}) {
            Visibility const visibility = seen(causal, {7, 4}, sees);
            auto const found = layer.value_and_gradients(visibility);
            ReferenceAttention const composed;
            test::check_agree(found, layer.value_and_gradients(visibility), each.second);
          }
        }
    }
  }

  TEST_CASE("the kernels' mask is that of dropout() on [B, H, n, m], whatever the blocks, the padding and the order of the windows") {
    // With values e_j the contexts are the weights.
    Index const batch = 2, heads = 2, queries = 150, keys = 90;
    double const rate = 0.4;
    WeightDropout const dropped{rate, Stream(4, "weights")};
    for (DType const dtype : {DType::float64, DType::float32}) {
      Tensor const mask = dropout(Tensor::ones({batch, heads, queries, keys}, dtype), rate, dropped.stream);
      Tensor const x = Tensor::zeros({batch, queries, heads}, dtype), k = Tensor::zeros({batch, keys, heads}, dtype);
      Tensor const one = reshape(one_hot(Tensor::arange(keys, DType::int64), keys, dtype), {1, 1, keys, keys});
      Tensor const values = merge_heads(reshape(expand(one, {batch, heads, keys, keys}), {batch, heads, keys, keys}));
      Tensor const centres = scale(Tensor::uniform({batch, heads, queries, 1}, Stream(5, "centres"), dtype), keys);
      for (double const window : {0.0, 7.5})
        for (bool const centred : {false, true}) {
          AttentionForm form{.heads = heads, .visibility = seen(true, {90, 31})};
          form.window = window;
          form.gaussian = centred;
          form.deviation = 1e6;
          AttentionInputs in{x, k, values};
          if (centred) in.centres = centres;
          Tensor const whole = split_heads(fused_attention(form, in), heads);
          form.dropout = dropped;
          Tensor const found = split_heads(fused_attention(form, in), heads);
          CHECK(difference(found, whole * mask) <= (dtype == DType::float64 ? 1e-15 : 1e-6));
          auto const fell = [](Tensor const& w) { return std::ranges::count(w.to_vector(), 0.0); };
          CHECK(fell(found) > fell(whole));
        }
    }
  }

  TEST_CASE("value and gradients have the same bits on 1, 2, 3 and 5 threads") {
    for (Variant variant : variants()) {
      if (variant.position != "none" && variant.position != "t5") continue;
      INFO(variant.name());
      variant.settings.set("window", 9.0);
      for (DType const dtype : {DType::float32, DType::float64})
        for (double const dropout : {0.0, 0.1}) {
          Layer const layer(variant, {3, 130, 130, 2, 8, 8, 130}, dropout, dtype);
          for (Visibility const& visibility : {seen(true, {130, 70, 99}), seen(false, {130, 70, 99}, 20)})
            test::check_threads({1, 2, 3, 5}, [&] { return layer.value_and_gradients(visibility); });
        }
    }
  }

  TEST_CASE("gradients have the same bits where those of the queries take the place of queries that nobody else holds") {
    for (Variant variant : variants()) {
      INFO(variant.name());
      variant.settings.set("window", 9.0);
      Layer const layer(variant, {3, 130, 130, 2, 8, 8, 130}, 0.1, DType::float32);
      Visibility const visibility = seen(true, {130, 70, 99});
      auto const gradients = [&](bool held) {
        for (Tensor x : layer.inputs()) x.clear_grad();
        Tensor given = scale(layer.query, 1);
        Tensor const holder = held ? given : Tensor();
        Tensor const y = layer.attention(std::exchange(given, {}), layer.key, layer.value, visibility, training());
        if (held) CHECK(holder.to_vector() == layer.query.to_vector());
        backward(y, test::projection({y}).front());
        if (held) CHECK(holder.to_vector() == layer.query.to_vector());
        std::vector<std::vector<double>> all;
        for (Tensor const& x : layer.inputs()) all.push_back(x.grad().defined() ? x.grad().to_vector() : std::vector<double>{});
        return all;
      };
      CHECK(gradients(true) == gradients(false));
    }
  }

  TEST_CASE("a training pass of every fused combination takes the kernels: its memory is linear in the length") {
    Index const heads = 8, width = 4;
    auto const peak = [&](Variant const& variant, double dropout, bool padded, Index length) {
      Threads const one(1);  // each has a block of scores of its own
      Layer const layer(variant, {1, length, length, heads, width, width, length}, dropout, DType::float32);
      return static_cast<double>(test::peak_of([&] { sum(layer(padded ? seen(false, {length - 37}) : seen(true))).backward(); }));
    };
    for (Variant const& variant : variants()) {
      if (variant.position != "none") continue;
      INFO(variant.name());
      for (double const dropout : {0.0, 0.1})
        for (bool const padded : {false, true}) {
          INFO("dropout ", dropout, ", padded ", padded);
          double const long_peak = peak(variant, dropout, padded, 512), short_peak = peak(variant, dropout, padded, 256);
          CHECK(long_peak < 0.25 * 4 * static_cast<double>(heads * 512 * 512));
          CHECK(long_peak < 2.2 * short_peak);
          if (dropout == 0 || padded) continue;
          ReferenceAttention const composed;
          CHECK(peak(variant, dropout, padded, 256) > 4 * static_cast<double>(heads * 256 * 256));
        }
    }
  }

  TEST_CASE("what a sliding window's training pass holds besides arrays of a number of elements a token does not grow") {
    Index const heads = 2, width = 4;
    Threads const one(1);
    for (Variant const& variant : variants()) {
      if (variant.position != "none") continue;
      INFO(variant.name());
      auto const peak = [&](Index length, Index sees) {
        Layer const layer(variant, {1, length, length, heads, width, width, length}, 0.1, DType::float32);
        return test::peak_of([&] { sum(layer(seen(true, {}, sees))).backward(); });
      };
      Index const growth = peak(4096, 16) - peak(2048, 16), arrays = 12 * heads * width * 4 * 2048;
      CHECK(growth < arrays);
      if (variant.settings.align != "softmax") continue;
      // Without a window a block of whole rows of scores grows, which scores by a formula want; products have tiles.
      bool const whole_rows = variant.settings.score == "additive" || variant.settings.score == "gaussian";
      CHECK((peak(4096, 0) - peak(2048, 0) > growth + 3 * 64 * 4 * 2048 / 2) == whole_rows);
    }
  }
}
