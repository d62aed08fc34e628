// Hard reads by the kernels against their composition: what is chosen, how likely it was, and every gradient.

#include "autograd/attention/attention.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/shape.hpp"
#include "tests/nn/variants.hpp"

TEST_SUITE("hard_read") {
  using namespace heed;
  using test::check_agree, test::hard, test::seen, test::training, test::Tensors, test::Variant;

  namespace {

  /// Attention that reads hard, of queries as many as keys, two sequences of two heads.
  struct Layer {
    Layer(Variant const& variant, Index length, double dropout, DType dtype)
        : parameters(5, dtype, test::wide()),
          position(make_position(variant.position, Scope(parameters), {length, heads * width, heads})),
          attention(Scope(parameters).at("attention"), reading(variant.settings), {heads, width, length + 3}, dropout, position.get()) {
      for (char const* name : {"query", "key", "value"})
        inputs.push_back(test::some({2, length, heads * width}, name, dtype).set_requires_grad());
      for (auto const& each : parameters.all()) inputs.push_back(each.second);
    }
    static AttentionSettings reading(AttentionSettings settings) {
      settings.read = "hard";
      settings.estimator.temperature = 0.7;
      return settings;
    }

    /// Contexts, probabilities and entropies, with one seed each.
    Tensors run(Visibility const& visibility, Pass const& pass) const {
      test::ChoosingPass const choosing(pass);
      Tensors results{attention(inputs[0], inputs[1], inputs[2], visibility, choosing.pass)};
      for (auto const& made : choosing.choices.made) results.insert(results.end(), {made.probability, made.entropy});
      return results;
    }
    /// These, and the gradients of a random projection of them.
    Tensors value_and_gradients(Visibility const& sees, Pass const& pass) const { return test::with_gradients(run(sees, pass), inputs); }

    static constexpr Index heads = 2, width = 4;
    Parameters parameters;
    std::unique_ptr<Position> position;
    Attention attention;
    Tensors inputs;
  };

  /// Every score with softmax, every align with scaled_dot, some positions.
  std::vector<Variant> few_variants() {
    std::vector<Variant> few;
    for (Variant const& v : test::variants()) {
      bool const plain = v.settings.score == "scaled_dot" && v.settings.scale == "rsqrt";
      bool const score = v.settings.align == "softmax" && v.position == "none";
      bool const align = plain && (v.position == "none" || v.position == "t5" || v.position == "shaw");
      if (score || align) few.push_back(v);
    }
    REQUIRE(few.size() > 30);
    return few;
  }

  }  // namespace

  TEST_CASE("choices, their probabilities and first derivatives are those of the composed path, for every estimator") {
    for (Variant variant : few_variants()) {
      INFO(variant.name());
      variant.settings.set("window", 2.5);
      for (char const* const estimator : {"reinforce", "straight_through", "gumbel"}) {
        CAPTURE(estimator);
        variant.settings.estimator.estimator = estimator;
        for (double const dropout : {0.0, 0.3}) {
          CAPTURE(dropout);
          for (bool const causal : {true, false})
            for (auto const& each : {std::pair{DType::float64, 1e-11}, std::pair{DType::float32, 1e-4}}) {
              Layer const layer(variant, 9, dropout, each.first);
              for (Index const sees : {0, 3}) {
                Visibility visibility = seen(causal, {9, 4}, sees);
                visibility.first_key = sees;
                auto const found = layer.value_and_gradients(visibility, training());
                ReferenceAttention const composed;
                check_agree(found, layer.value_and_gradients(visibility, training()), each.second);
              }
            }
        }
      }
    }
  }

  TEST_CASE("Gumbel noise is finite for every uniform number") {
    for (double const u : {0.0, 0.5, 1 - 0x1p-53}) CHECK(std::isfinite(-std::log(-std::log(inside_of_unit(u)))));
  }

  TEST_CASE("evaluated by the most likely key, by a draw and by the expectation alike") {
    for (char const* const how : {"argmax", "sample", "expectation"}) {
      CAPTURE(how);
      Variant variant{{}, "none"};
      variant.settings.estimator.evaluate = how;
      for (char const* const align : {"softmax", "local_p", "sparsemax"}) {
        variant.settings.align = align;
        Layer const layer(variant, 70, 0, DType::float64);
        Visibility const visibility = seen(true, {70, 0});  // and a sequence that sees nothing
        auto const found = layer.value_and_gradients(visibility, {});
        CHECK(found.size() == 1 + layer.inputs.size());
        ReferenceAttention const composed;
        check_agree(found, layer.value_and_gradients(visibility, {}), 1e-11);
      }
    }
  }

  TEST_CASE("evaluation reads the likeliest key, a draw, or the expectation") {
    Tensor const q = Tensor::normal({3, 4, 4}, Stream(5, "q"), DType::float64);
    Tensor const v = Tensor::normal({3, 4, 4}, Stream(5, "v"), DType::float64);
    Visibility const visibility{.causal = true, .lengths = Tensor::of(std::vector<Index>{4, 2, 0}, {3}), .offset = 0};
    auto const read = [&](AttentionSettings const& settings, Pass const& pass) {
      Parameters parameters(1, DType::float64);
      Attention const attention(Scope(parameters), settings, {2, 2, 4}, 0);
      return std::pair(attention(q, q, v, visibility, pass), test::weights_of(attention, q, q, visibility));
    };
    AttentionSettings settings = hard();
    auto const [soft, weights] = read({}, {});
    settings.estimator.evaluate = "expectation";
    CHECK(max(abs(read(settings, {}).first - soft)).item() < 1e-12);

    settings.estimator.evaluate = "argmax";
    Tensor const likeliest = one_hot(argmax(weights, -1), 4, DType::float64) * greater(weights, Tensor::scalar(0, DType::float64));
    CHECK(max(abs(read(settings, {}).first - merge_heads(matmul(likeliest, split_heads(v, 2))))).item() == 0);

    settings.estimator.evaluate = "sample";
    Tensor mean_read = Tensor::zeros(soft.shape(), DType::float64);
    int const times = 4000;
    for (int k = 0; k < times; ++k) {
      Pass pass;
      pass.decoding.choosing = Stream(1, "draws").child(static_cast<std::uint64_t>(k));
      mean_read = mean_read + scale(read(settings, pass).first, 1.0 / times);
    }
    CHECK(max(abs(mean_read - soft)).item() < 0.15);  // about 5 standard errors
    CHECK(read(settings, {}).first.to_vector() == read(settings, {}).first.to_vector());
  }

  TEST_CASE("a query that sees no key reads zeros and has zero gradients, whatever the estimator") {
    for (std::string const estimator : {"reinforce", "straight_through", "gumbel"}) {
      CAPTURE(estimator);
      for (std::string const align : {"softmax", "local_m", "sparsemax", "entmax15"}) {
        CAPTURE(align);
        AttentionSettings settings = hard(estimator);
        settings.align = align;
        CHECK(settings.contradiction().value_or("") == "");
        Parameters parameters(1, DType::float64);
        Attention const attention(Scope(parameters), settings, {1, 2, 3}, 0);
        Tensor q = Tensor::normal({2, 3, 2}, Stream(6, "q"), DType::float64);
        q.set_requires_grad();
        test::ChoosingPass const choosing(training(1));
        Tensor const lengths = Tensor::of(std::vector<Index>{3, 0}, {2});
        Tensor const c = attention(q, q, q, {.causal = false, .lengths = lengths, .offset = 0}, choosing.pass);
        choosing.with_choices(sum(c * c)).backward();
        for (Index i = 0; i < 6; ++i) CHECK(std::isfinite(q.grad().at(i)));
        for (Tensor const& x : {q.grad(), c}) CHECK(x.rows(1, 1).to_vector() == std::vector<double>(6));
      }
    }
  }

  TEST_CASE("second derivatives are those of the composed path, for every estimator, in more blocks than one") {
    auto const second = [](Layer const& layer, Visibility const& visibility) {
      Tensors const results = layer.run(visibility, training());
      Tensors const first = grad(results, layer.inputs, test::projection(results), true);
      Tensors wanted;
      for (Tensor const& g : first)
        if (g.defined() && g.requires_grad()) wanted.push_back(g);
      REQUIRE(!wanted.empty());
      return grad(wanted, layer.inputs, test::projection(wanted));
    };
    for (char const* const estimator : {"reinforce", "straight_through", "gumbel"})
      for (char const* const align : {"softmax", "local_p"}) {
        INFO("estimator ", estimator, ", align ", align);
        Variant variant{{}, "none"};
        variant.settings.align = align;
        variant.settings.estimator.estimator = estimator;
        Layer const layer(variant, 300, 0.3, DType::float64);
        for (Index const sees : {0, 40}) {
          Visibility const visibility = seen(true, {300, 120}, sees);
          Tensors const found = second(layer, visibility);
          ReferenceAttention const composed;
          check_agree(found, second(layer, visibility), 1e-10);
        }
      }
  }

  TEST_CASE("the same bits on 1, 2 and 5 threads") {
    for (char const* const estimator : {"reinforce", "straight_through", "gumbel"}) {
      Variant variant{{}, "none"};
      variant.settings.estimator.estimator = estimator;
      Layer const layer(variant, 130, 0.1, DType::float32);
      test::check_threads({1, 2, 5}, [&] { return layer.value_and_gradients(seen(true, {130, 70}), training()); });
    }
  }

  TEST_CASE("a training pass holds no weights: its memory is linear in the length") {
    for (char const* const estimator : {"reinforce", "straight_through", "gumbel"}) {
      CAPTURE(estimator);
      Variant variant{{}, "none"};
      variant.settings.estimator.estimator = estimator;
      auto const peak = [&](Index length) {
        Threads const one(1);
        Layer const layer(variant, length, 0.1, DType::float32);
        return static_cast<double>(test::peak_of([&] {
          Tensors const results = layer.run(seen(true, {length, length}), training());
          Tensor total = sum(results[0]);
          for (std::size_t i = 1; i < results.size(); ++i) total = total + sum(results[i]);
          total.backward();
        }));
      };
      double const long_peak = peak(1024), short_peak = peak(512);
      CHECK(long_peak < 0.2 * 4 * 2 * Layer::heads * 1024 * 1024);
      CHECK(long_peak < 2.2 * short_peak);
    }
  }
}
