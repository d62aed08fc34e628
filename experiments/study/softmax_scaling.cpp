// What softmax does to gradients as d_k grows: logits s q·k_j of one query and n keys, s = 1 (none), 1/√d_k (rsqrt) or 1/d_k (inverse).
//
// Queries and keys are drawn, multiplied and put through softmax in blocks: some queries meet some keys in groups of n, which gives many
// rows from few random numbers. Rows of a block share queries or keys, so that a mean's standard error is estimated from the block means;
// blocks are independent. Each row also counts with its keys negated, since all laws here are symmetric about 0. A cell of the grid draws
// blocks until every standard error is small enough. Conditional distributions are not used for sampling: that the logits of Gaussian keys
// given q are N(0, |q|²) belongs to the theory that is tested.

#include "experiments/study/softmax_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/parallel.hpp"
#include "experiments/ablation/scaling/quadrature.hpp"
#include "experiments/metric/probe/probe.hpp"
#include "experiments/study/samples.hpp"
#include "nn/attention/steps.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

// ---------------------------------------------------------------- settings

namespace {

constexpr std::array laws{std::pair{"logits", Law::logits}, std::pair{"gaussian", Law::gaussian}, std::pair{"uniform", Law::uniform},
                          std::pair{"rademacher", Law::rademacher}};

std::vector<Index> integers(std::vector<double> const& values) { return {values.begin(), values.end()}; }

// ---------------------------------------------------------------- theory

using TheoryOfCell = std::array<std::optional<double>, quantities>;

/// Theoretical values for one distribution, scale and d_k, by number of keys.
std::vector<TheoryOfCell> theory_of(std::string const& distribution, double scale, Index d_k, std::vector<Index> const& keys) {
  auto const d = static_cast<double>(d_k);
  Law const law = law_of(distribution);
  // E z⁴/(E z²)² = 3 + (κ² − 3)/d for components of kurtosis κ
  double const component = law == Law::gaussian ? 3 : law == Law::uniform ? 1.8 : 1;
  TheoryOfCell moments;
  at(moments, Quantity::logit_variance) = scale * scale * d;
  at(moments, Quantity::logit_kurtosis) = law == Law::logits ? 3 : 3 + (component * component - 3) / d;
  std::vector<TheoryOfCell> result(keys.size(), moments);
  auto const set_softmax = [](TheoryOfCell& theory, SoftmaxExpectations const& e) {
    at(theory, Quantity::trace) = e.trace;
    at(theory, Quantity::frobenius_squared) = e.frobenius_squared;
    at(theory, Quantity::entropy) = e.entropy;
    at(theory, Quantity::max_weight) = e.max_weight;
  };
  if (law == Law::logits) {
    auto const expected = softmax_of_normal_logits(scale * scale * d, keys);
    for (std::size_t i = 0; i < keys.size(); ++i) set_softmax(result[i], expected[i]);
  }
  if (law == Law::gaussian) {
    auto const expected = softmax_of_gaussian_products(d_k, scale, keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      set_softmax(result[i], expected[i].softmax);
      at(result[i], Quantity::query_gradient_squared) = expected[i].query_gradient_squared;
      at(result[i], Quantity::key_gradient_squared) = expected[i].key_gradient_squared;
    }
  }
  return result;
}

/// Theoretical values for cells of laws, computed on first use for all scales and numbers of keys at once.
class GridTheory {
 public:
  explicit GridTheory(SoftmaxScalingSettings const& settings)
      : scales_(settings.scales()), keys_(integers(settings.keys)), by_scale_(scales_.size()) {}

  /// Adds theory to cells of the grid with one distribution, d_k and number of keys, one for each scale.
  void add_to(std::vector<ScalingCell>& cells) {
    auto const& first = cells.front();
    if (std::pair const wanted(first.distribution, first.d_k); computed_ != wanted) {
      parallel_for(std::ssize(scales_), 1e9, [&](Index begin, Index end) {
        for (Index k = begin; k < end; ++k)
          at(by_scale_, k) = theory_of(first.distribution, fixed_scale(at(scales_, k), to_double(first.d_k)).value(), first.d_k, keys_);
      });
      computed_ = wanted;
    }
    auto const n = std::ranges::find(keys_, first.keys) - keys_.begin();
    for (std::size_t k = 0; k < cells.size(); ++k)
      for (std::size_t q = 0; q < quantities; ++q)
        if (auto& value = cells[k].values[q]) value->theory = at(by_scale_[k], n)[q];
  }

 private:
  std::vector<std::string> scales_;
  std::vector<Index> keys_;
  std::pair<std::string, Index> computed_;           ///< the distribution and d_k of `by_scale_`
  std::vector<std::vector<TheoryOfCell>> by_scale_;  ///< by scale and by number of keys
};

// ---------------------------------------------------------------- measurements

/// The norms of one draw, by layer.
std::vector<double> norms_of(StackSettings const& settings, Stream const& stream) {
  WithGrad const recorded;
  InitSettings init;
  init.std = 1 / std::sqrt(static_cast<double>(LayerDraws::width));
  Parameters parameters(stream.child("weights").bits(0) >> 1, DType::float32, init);
  Gpt const model(parameters, settings, LayerDraws::vocabulary);
  Tensor embeddings = *parameters.find("token_embedding.weight");
  for (float& x : embeddings.mutable_data<float>()) x *= std::sqrt(static_cast<float>(LayerDraws::width));
  std::vector<Tensor> weights;
  for (Index layer = 0; layer < settings.layers; ++layer)
    weights.push_back(*parameters.find(fmt::format("blocks.{}.attention.query.weight", layer)));
  Batch const batch = random_batch(stream, LayerDraws::rows, LayerDraws::context, LayerDraws::vocabulary);
  return mapped(grad({model.loss(batch, {})}, weights), [](Tensor const& gradient) { return std::sqrt(squared_norm(gradient)); });
}

/// Layers of Transformers that are not trained; fewer draws for a quick look.
std::vector<ScalingCell> measure_layers(SoftmaxScalingSettings const& settings, std::string const& placement, std::string const& scale,
                                        Index d, std::uint64_t seed) {
  auto const norms = gradients_of_layers({settings.layers, settings.quick ? 4 : 16}, placement, scale, d, seed);
  std::vector<ScalingCell> cells;
  for (std::size_t layer = 0; layer < norms.size(); ++layer) {
    ScalingCell& cell = cells.emplace_back(ScalingCell{fmt::format("{}-norm layer{}", placement, layer), scale, d, LayerDraws::context});
    at(cell.values, Quantity::query_weights_gradient) = measured_mean(norms[layer]);
  }
  return cells;
}

Declared<StudyKind> const softmax_scaling_study{
    study_kind("softmax_scaling", "saturation of softmax as d_k grows, with and without a scale, compared with theory", softmax_scaling,
               softmax_scaling_page)};

}  // namespace

Law law_of(std::string const& name) {
  return std::ranges::find(laws, name, [](auto const& law) { return std::string(law.first); })->second;
}

std::vector<Field> SoftmaxScalingSettings::fields() {
  return {
      field(&d_k, "d_k", "widths of queries and keys").in(1, 65536).integers().filled(),
      field(&keys, "keys", "numbers of keys that a query attends to").in(2, 4096).integers().filled(),
      field(&scale, "scale", "scales of the logits: 1, 1/√d_k, 1/d_k").one_of({"none", "rsqrt", "inverse"}),
      field(&power, "power", "further scales of the logits: d_k^−α for each of these α").in(0, 4),
      field(&distribution, "distribution",
            "distribution of the components of queries and keys, mean 0 and variance 1; logits: iid N(0, d_k) instead of dot products")
          .one_of({"logits", "gaussian", "uniform", "rademacher"}),
      field(&precision, "precision", "a cell is sampled until every relative standard error is at most this").in(1e-4, 1),
      field(&limit, "limit", "largest number of sampled logits per cell").in(1, 1e12),
      field(&quick, "quick",
            "a preview in ten seconds: every second d_k, three numbers of keys and one distribution of the lists above, errors up to 5 %"),
      field(&run, "run", "a trained run: measure the queries and keys of its heads on its validation data, too"),
      field(&sequences, "sequences", "largest number of sequences of the run's validation data").in(2, 1e6),
      field(&layers, "layers", "layers of untrained Transformers, pre-norm and post-norm, whose gradients by layer are measured; 0: none")
          .in(0, 64)};
}

std::optional<std::string> SoftmaxScalingSettings::contradiction() {
  if (scale.empty() && power.empty()) return "scale: is empty";
  if (distribution.empty() && !run) return "distribution: is empty";
  return std::nullopt;
}

std::vector<std::string> SoftmaxScalingSettings::scales() const {
  auto names = scale;
  for (double const alpha : power) names.push_back(fmt::format("{}{}", power_prefix, alpha));
  return names;
}

double SoftmaxScalingSettings::shown_keys() const { return std::ranges::find(keys, 10.0) != keys.end() ? 10 : keys.front(); }

SoftmaxScalingSettings SoftmaxScalingSettings::looked_at() const {
  SoftmaxScalingSettings few = *this;
  if (!quick) return few;
  few.d_k.clear();
  for (std::size_t i = 0; i < d_k.size(); i += 2) few.d_k.push_back(d_k[i]);
  double most = 0;  // many keys are what takes long
  for (double const n : keys) most = n <= 64 ? std::max(most, n) : most;
  std::set<double> const three{keys.front(), shown_keys(), most > 0 ? most : keys.front()};
  few.keys.assign(three.begin(), three.end());
  if (distribution.size() > 1)
    few.distribution = {std::ranges::find(distribution, "gaussian") != distribution.end() ? "gaussian" : distribution.front()};
  few.precision = std::max(precision, 0.05);
  return few;
}

std::vector<std::vector<double>> gradients_of_layers(LayerDraws const& draws, std::string const& placement, std::string const& scale,
                                                     Index d_k, std::uint64_t seed) {
  std::vector<std::vector<double>> by_layer(static_cast<std::size_t>(draws.layers));
  StackSettings settings;
  settings.layers = draws.layers;
  settings.heads = 1;
  settings.width = LayerDraws::width;
  settings.context = LayerDraws::context;
  settings.position = "none";
  settings.attention.scale = scale;
  settings.norm.placement = placement;
  settings.tie = false;
  settings.key_width = d_k;
  for (Index draw = 0; draw < draws.draws; ++draw) {
    auto const norms = norms_of(settings, Stream(seed, "layers").child(static_cast<std::uint64_t>(draw)));
    for (std::size_t layer = 0; layer < norms.size(); ++layer) by_layer[layer].push_back(norms[layer]);
    stop_if_interrupted();
  }
  return by_layer;
}

Study softmax_scaling(SoftmaxScalingSettings const& given, StudyContext const& context) {
  auto const settings = std::make_shared<SoftmaxScalingSettings const>(given.looked_at());
  auto const theory = std::make_shared<GridTheory>(*settings);
  auto const seed = context.seed;
  auto const widths = integers(settings->d_k), numbers_of_keys = integers(settings->keys);
  Study study;
  auto const add = [&study](std::string name, std::function<std::vector<ScalingCell>()> measure) {
    study.cells.push_back({std::move(name), [measure = std::move(measure)] { return rows_of(measure()); }});
  };
  for (auto const& distribution : settings->distribution)
    for (auto const d : widths)
      for (auto const keys : numbers_of_keys)
        add(fmt::format("{}, d_k {}, {} keys", distribution, d, keys), [=] {
          auto cells = sample_cells(*settings, distribution, d, keys, seed);
          theory->add_to(cells);
          return cells;
        });
  if (settings->run) {
    for (auto& each : trained_heads(*settings->run, settings->sequences, context, study.read)) {
      auto const head = std::make_shared<TrainedHead const>(std::move(each));
      for (auto const keys : numbers_of_keys)
        add(fmt::format("{}, {} keys", head->name, keys), [=] { return measure_head(*settings, *head, keys); });
    }
  }
  // At every second d_k.
  for (std::size_t i = 0; i < widths.size() && settings->layers > 0; i += widths.size() > 6 ? 2 : 1) {
    for (auto const& scale : settings->scales()) {
      if (scale != "none" && scale != "rsqrt") continue;
      for (std::string const placement : {"pre", "post"})
        add(fmt::format("{}-norm layers, {}, d_k {}", placement, scale, widths[i]),
            [=, d = widths[i]] { return measure_layers(*settings, placement, scale, d, seed); });
    }
  }
  study.report = [settings](CsvRows const& rows) { return report(*settings, rows); };
  return study;
}

}  // namespace heed
