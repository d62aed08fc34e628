#include "experiments/ablation/scaling/scaled_arms.hpp"

#include "autograd/ops/softmax.hpp"
#include "experiments/study/softmax_scaling.hpp"
#include "nn/models/blocks.hpp"
#include "tests/experiments/said.hpp"
#include "tests/nn/models.hpp"

TEST_SUITE("scaled_arms") {
  using namespace heed;
  using doctest::Approx;

  TEST_CASE("scales by name: words, powers of the width, numbers, and nothing of other texts") {
    CHECK(fixed_scale("none", 16) == 1);
    CHECK(fixed_scale("rsqrt", 16) == 0.25);
    CHECK(fixed_scale("inverse", 16) == 0.0625);
    CHECK(*fixed_scale("power 0.25", 16) == Approx(0.5));
    CHECK(*fixed_scale("power -1", 16) == Approx(16));
    CHECK(fixed_scale("2.5", 16) == 2.5);
    for (char const* const text : {"", "power", "power ", "power x", "learned", "2.5x", "inf", "power nan"}) CHECK(!fixed_scale(text, 16));
  }

  TEST_CASE("the spread of queries' and keys' weights at the start is theirs alone") {
    auto settings = test::sized<StackSettings>(1, 2, 8, 64);
    auto const started = [&](double spread, std::string const& name) {
      settings.query_key_spread = spread;
      Parameters parameters(1, DType::float64);
      Gpt const model(parameters, settings, 5);
      return parameters.find("blocks.0.attention." + name + ".weight")->to_vector();
    };
    for (char const* const name : {"query", "key", "value"}) {
      auto const usual = started(1, name), smaller = started(0.25, name);
      for (std::size_t i = 0; i < usual.size(); ++i) CHECK(smaller[i] == Approx(name[0] == 'v' ? usual[i] : usual[i] / 4));
    }
  }

  TEST_CASE("the gradient by a query is that of a sum without cancellation, however saturated its softmax is") {
    Index const n = 5, queries = 32;
    for (Index const d : {1, 3}) {  // by components, and by distances
      CAPTURE(d);
      BlockShape const shape{d, n, queries, n};
      auto const block = draw_block(Law::gaussian, shape, Stream(3, "block"));
      for (double const scale : {0.1, 1.0, 8.0}) {
        auto const found = measure_block(block, shape, {{scale}, true, true}).front();
        REQUIRE(found.query_gradient.size() == 2 * queries);
        double mean = 0;
        for (Index i = 0; i < 2 * queries; ++i) {
          double const sign = i < queries ? 1 : -1;
          std::vector<double> z;
          for (Index j = 0; j < n; ++j) z.push_back(sign * scale * static_cast<double>(at(block.products, j * queries + i % queries)));
          auto const p = softmax(Tensor::of(z, {n}, DType::float64)).to_vector();
          double squared = 0;
          for (std::size_t a = 0; a < p.size(); ++a)
            for (std::size_t c = 0; c < static_cast<std::size_t>(d); ++c) {
              double sum = 0;
              for (std::size_t b = 0; b < p.size(); ++b)
                sum += p[b] * static_cast<double>(block.keys[a * static_cast<std::size_t>(d) + c] -
                                                  block.keys[b * static_cast<std::size_t>(d) + c]);
              squared += p[a] * p[a] * sum * sum;
            }
          auto const measured = static_cast<double>(at(found.query_gradient, i));
          CHECK(measured / (scale * std::sqrt(squared)) == Approx(1).epsilon(1e-4));
          mean += scale * scale * squared / static_cast<double>(2 * queries);
        }
        CHECK(at(found.means, Quantity::query_gradient_squared) == Approx(mean).epsilon(1e-4));
      }
    }
    BlockShape const shape{1, n, queries, n};
    auto const plain = measure_block(draw_block(Law::gaussian, shape, Stream(3, "block")), shape, {{1.0}, true, false});
    CHECK(plain.front().frobenius.size() == queries);
  }

  TEST_CASE("layers before training: of width 1 a scale changes nothing, of others it does; draws repeat") {
    LayerDraws const draws{2, 3};
    auto const of = [&](char const* placement, char const* scale, Index d_k) {
      return gradients_of_layers(draws, placement, scale, d_k, 1);
    };
    auto const narrow = of("pre", "none", 1);
    REQUIRE(narrow.size() == 2);
    REQUIRE(narrow.front().size() == 3);
    CHECK(narrow == of("pre", "rsqrt", 1));
    CHECK(narrow != of("post", "none", 1));
    CHECK(of("pre", "none", 64) != of("pre", "rsqrt", 64));
    for (auto const& layer : narrow)
      for (double const norm : layer) CHECK((std::isfinite(norm) && norm > 0));
  }

  TEST_CASE(
      "an ablation over the factor before q·k has its parts: exponents, the start's variance, heads on the theory's curve, sharpness") {
    test::Folder const folder;
    test::put(folder / "base.yaml",
              "data: {kind: grammar}\ninit: {std: 0.3}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8, context: 32}\ntrain: {steps: 4, "
              "batch: 2, evaluate: {every: 2, batches: 1}}\nprobes: {every: 2, attention: [score_variance], gradients: "
              "[softmax_jacobian_trace], curvature: [sharpness], iterations: 3}\n");
    test::put(
        folder / "ablation.yaml",
        "ablation: factors\nbase: base.yaml\nvary: {model.attention.scale: [none, power 0.25, rsqrt], model.key_width: [4, 16]}\n"
        "add:\n  small: {model.attention.scale: none, model.key_width: 16, model.query_key_spread: 0.5}\n"
        "  large: {model.attention.scale: rsqrt, model.key_width: 16, model.query_key_spread: 2}\nseeds: 2\nmetric: validation.loss\n");
    test::run_well({"run", folder / "ablation.yaml", "--output", (folder / "runs").string(), "--quiet"});
    test::check_holds(test::get(folder / "runs/factors/report.html"),
                      {"At d_k 16, α = ", "The factor, or the variance that scores start with", "no scale, smaller start",
                       "Trained heads compared with random scores", "At the first probe tr J of a head is", "Curvature of the loss",
                       "sharpness goes as d_k to the power"});
    auto const material = read_material(folder / "runs/factors");
    auto const arms = scaled_arms(material);
    REQUIRE(arms.size() == 8);
    CHECK(widths_of(arms) == std::vector<double>{4, 16});
    CHECK(scales_of(arms) == std::vector<std::string>{"none", "power 0.25", "rsqrt"});
    for (auto const& arm : arms) {
      CHECK(arm.context == 32);
      CHECK(*arm.power() == Approx(arm.scale == "none" ? 0 : arm.scale == "rsqrt" ? 0.5 : 0.25));
      auto const heads = head_series(*arm.arm, "attention.score_variance");
      REQUIRE(heads.size() == 1);
      CHECK(heads.begin()->first == "layer0.head0");
      CHECK(heads.begin()->second.size() == 3);
    }
    CHECK(arms.back().name_with_start() == "1/√d_k, larger start");
  }
}
