#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/ablation/scaling/scaled_arms.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/figure.hpp"
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

/// One number of the study.
struct Measured {
  double mean = 0, standard_error = 0;
  std::optional<double> theory;
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
  /// Whether the distribution is a trained run's head ("layer0.head1"); others are a layer of an untrained Transformer ("pre-norm layer0"),
  /// or a law.
  bool of_head() const { return distribution.starts_with("layer"); }
  bool of_layer() const { return distribution.find("-norm layer") != std::string::npos; }
  bool of_law() const { return !of_head() && !of_layer(); }
};

/// The law that a distribution's name stands for; and real numbers with integer values as integers.
Law law_of(std::string const& name);
std::vector<Index> integers(std::vector<double> const& values);

/// Theoretical values for cells of laws, computed on first use for all scales and numbers of keys at once.
class GridTheory {
 public:
  explicit GridTheory(SoftmaxScalingSettings const& settings) : scales_(settings.scales()), keys_(integers(settings.keys)) {}
  /// Adds theory to cells of the grid with one distribution and one d_k.
  void add_to(std::vector<ScalingCell>& cells);

 private:
  using OfCell = std::array<std::optional<double>, quantities>;

  void compute(std::string const& distribution, Index d_k);

  std::vector<std::string> scales_;
  std::vector<Index> keys_;
  std::string distribution_;  ///< the one computed last; empty: none
  Index d_k_ = 0;
  std::vector<std::vector<OfCell>> by_scale_;  ///< by scale and by number of keys
};

/// The study: cells of the grid, of the run's heads and of layers. Throws ConfigError and FileError for the run.
Study softmax_scaling(SoftmaxScalingSettings const& settings, StudyContext const& context);

/// Cells as rows of results.csv, without its header, and the cells in a results.csv. Throws FileError for an invalid line.
CsvRows rows_of(std::vector<ScalingCell> const& cells);
std::vector<ScalingCell> cells_of(CsvRows const& csv, std::filesystem::path const& path);

/// The parts of the study's page.
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

/// The result from the rows of all cells.
StudyResult report(SoftmaxScalingSettings const& settings, CsvRows const& rows);

/// Heat maps over (d_k, n) by scale: entropy, typical and mean square Jacobian relative to those of uniform weights. Nothing if d_k or n
/// has one value only.
std::optional<Figure> saturation_maps(std::vector<ScalingCell> const& cells, std::string const& distribution,
                                      std::vector<std::string> const& scales);

/// (measured − exact)/standard error of all cells in their order, against normal quantiles; nothing without theory.
std::optional<Figure> agreement_with_theory(std::vector<ScalingCell> const& cells);

/// Gradients of each layer's query weights before training, a panel for each norm placement and scale; nothing without layers.
std::optional<Figure> layers_before_training(std::vector<ScalingCell> const& cells);
/// The first and last layer at the largest d_k, as HTML.
std::string table_of_layers(std::vector<ScalingCell> const& cells);

}  // namespace heed
