#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/scaling/scaled_arms.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/study/saturation.hpp"
#include "experiments/study/study.hpp"

namespace heed {

/// `study: {kind: softmax_scaling}`: softmax saturation as d_k grows, with and without a scale, compared with theory.
struct SoftmaxScalingSettings : Settings {
  std::vector<double> d_k{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  std::vector<double> keys{2, 4, 8, 10, 16, 32, 64, 128, 256};
  std::vector<std::string> scale{"none", "rsqrt", "inverse"};
  std::vector<double> power;  ///< α of additional scales d_k^−α
  std::vector<std::string> distribution{"logits", "gaussian", "uniform", "rademacher"};
  double precision = 0.01;
  double limit = 2e9;
  bool quick = false;
  std::optional<std::string> run;  ///< its heads are additional distributions
  Index sequences = 256;
  Index layers = 6;  ///< of untrained Transformers; 0: none are measured

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;

  /// Names of all scales: the named ones, then "power 0.25".
  std::vector<std::string> scales() const;
  /// The number of keys that tables and figures show first: 10 if measured.
  double shown_keys() const;
  /// With `quick` the settings of a run of seconds, else these.
  SoftmaxScalingSettings looked_at() const;
};

/// A cell of the grid: measurements under one scale. Undefined numbers are absent: gradients where there are no queries, and a median
/// between two of few possible values (rademacher).
struct ScalingCell {
  std::string distribution, scale;
  Index d_k = 0, keys = 0;
  std::array<std::optional<Measured>, quantities> values{};

  Measured const* get(Quantity q) const {
    auto const& value = at(values, q);
    return value ? &*value : nullptr;
  }
  /// Of one that it has.
  double mean(Quantity q) const { return at(values, q)->mean; }
  /// Whether the distribution is a trained run's head ("layer0.head1"); others are a layer of an untrained Transformer ("pre-norm layer0"),
  /// or a law.
  bool of_head() const { return distribution.starts_with("layer"); }
  bool of_layer() const { return distribution.find("-norm layer") != std::string::npos; }
  bool of_law() const { return !of_head() && !of_layer(); }
};

/// The law that a distribution's name stands for.
Law law_of(std::string const& name);

/// Settings of the draws: stacks of this many one-head layers over random tokens.
struct LayerDraws {
  Index layers = 6, draws = 16;
  static constexpr Index width = 64, context = 32, rows = 4, vocabulary = 64;
};

/// Gradients of the query projections of each layer of an untrained Transformer: by layer, ‖∂L/∂W_q‖_F of each draw. `placement`: of the
/// norms, "pre" or "post"; `scale`: of the scores, as in attention's key. Each draw has weights of variance 1/width and embeddings of
/// variance 1, so that queries and keys of normalised inputs have components of variance 1; targets are random. The draws are the same for
/// every placement and scale. Throws as stop_if_interrupted(), after any draw.
std::vector<std::vector<double>> gradients_of_layers(LayerDraws const& draws, std::string const& placement, std::string const& scale,
                                                     Index d_k, std::uint64_t seed);

/// The study: cells of the grid, of the run's heads and of layers. Throws ConfigError and FileError for the run.
Study softmax_scaling(SoftmaxScalingSettings const& settings, StudyContext const& context);

/// Cells as rows of results.csv, without its header, and the cells in a results.csv. Throws FileError for an invalid line.
CsvRows rows_of(std::vector<ScalingCell> const& cells);
std::vector<ScalingCell> cells_of(CsvRows const& csv, std::filesystem::path const& path);

/// The result from the rows of all cells, and the parts of the study's page.
StudyResult report(SoftmaxScalingSettings const& settings, CsvRows const& rows);
std::vector<StudyPart> softmax_scaling_page(StudyRecord const& record);

/// A fitted power law, quantity ∝ d_k^slope over d_k ≥ 64.
struct Slope {
  std::string distribution, scale;
  Index keys = 0;
  Quantity quantity{};
  Line line;
  std::optional<double> theory;
};
std::vector<Slope> slopes_of(std::vector<ScalingCell> const& cells);

/// The difference of a measured number from theory, in standard errors.
struct ZScore {
  ScalingCell const* cell;
  Quantity quantity;
  double z;
};
/// For every number of these cells with a theoretical value. Numbers without variance, which agree up to rounding, are left out.
std::vector<ZScore> scores_of(std::vector<ScalingCell> const& cells);

/// The joint agreement of scores.
struct ScoreAgreement {
  std::size_t draws = 0;   ///< number of (distribution, d_k, keys) combinations
  double mean_square = 0;  ///< the mean over these of the mean z²: 1 is expected if theory and standard errors are right
  Interval expected{};     ///< quantiles of χ²_N / N at 2.5 % and 97.5 %, N the number of draws
  ZScore farthest{};       ///< the one with the largest |z|
};
/// All numbers of one distribution, d_k and number of keys are measured on the same samples and are correlated, so that each draw counts
/// once. The range is for one score per draw; averages of several partly independent scores lie closer to 1. Requires at least one score.
ScoreAgreement agreement_of(std::vector<ZScore> const& scores);
/// (measured − exact)/standard error of all cells in their order, against normal quantiles; nothing without theory.
std::optional<Figure> agreement_with_theory(std::vector<ScalingCell> const& cells);

}  // namespace heed
