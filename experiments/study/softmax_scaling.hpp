#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/ablation/scaling/scaled_arms.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/study/saturation.hpp"
#include "experiments/study/study.hpp"

namespace heed {

/// `study: {kind: softmax_scaling}`: how softmax saturates as d_k grows, with and without a scale, beside the theory.
struct SoftmaxScalingSettings : Settings {
  std::vector<double> d_k{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  std::vector<double> keys{2, 4, 8, 10, 16, 32, 64, 128, 256};
  std::vector<std::string> scale{"none", "rsqrt", "inverse"};
  std::vector<double> power;  ///< α of further scales d_k^−α
  std::vector<std::string> distribution{"logits", "gaussian", "uniform", "rademacher"};
  double precision = 0.01;
  double limit = 2e9;
  bool quick = false;
  std::optional<std::string> run;  ///< its heads are further distributions
  std::int64_t sequences = 256;
  std::int64_t layers = 6;  ///< of Transformers that are not trained; 0: none are looked at

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;

  /// Names of all scales: the words, then "power 0.25".
  std::vector<std::string> scales() const;
  /// The number of keys that tables and figures show first: 10 if it is measured.
  double shown_keys() const;
  /// With `quick` the settings of a look in seconds, else these.
  SoftmaxScalingSettings looked_at() const;
};

/// One number of the study.
struct Measured {
  double mean = 0, standard_error = 0;
  std::optional<double> theory;
};

/// A cell of the grid: what was measured under one scale. What does not exist is absent: gradients by queries where
/// there are none, and a median that lies between two values of few (rademacher).
struct ScalingCell {
  std::string distribution, scale;
  std::int64_t d_k = 0, keys = 0;
  std::array<std::optional<Measured>, quantities> values{};

  Measured const* get(Quantity q) const {
    auto const& value = values[static_cast<std::size_t>(q)];
    return value ? &*value : nullptr;
  }
  /// Whose numbers they are, by the distribution's name: a trained run's head ("layer0.head1"), a layer of a Transformer that is not
  /// trained
  /// ("pre-norm layer0"), else a law's.
  bool of_head() const { return distribution.starts_with("layer"); }
  bool of_layer() const { return distribution.find("-norm layer") != std::string::npos; }
  bool of_law() const { return !of_head() && !of_layer(); }
};

/// The law of a distribution's name, and whole numbers as such.
Law law_of(std::string const& name);
std::vector<std::int64_t> integers(std::vector<double> const& values);

/// What theory says of the cells of laws, computed when it is first asked for: for all scales and numbers of keys at once.
class GridTheory {
 public:
  explicit GridTheory(SoftmaxScalingSettings const& settings) : scales_(settings.scales()), keys_(integers(settings.keys)) {}
  /// Cells of the grid with one distribution and one d_k.
  void add_to(std::vector<ScalingCell>& cells);

 private:
  using OfCell = std::array<std::optional<double>, quantities>;

  void compute(std::string const& distribution, std::int64_t d_k);

  std::vector<std::string> scales_;
  std::vector<std::int64_t> keys_;
  std::string distribution_;  ///< that of which theory was asked for last; empty: of none
  std::int64_t d_k_ = 0;
  std::vector<std::vector<OfCell>> by_scale_;  ///< and by number of keys
};

/// All cells of the grid, of the run's heads and of layers; nothing if it was interrupted. Cells that `context` has kept are not measured
/// again, nor what it has of a cell that is not finished. Throws FileError for a results.csv that is none of this study's, Error if what
/// was done cannot be kept.
std::optional<std::vector<ScalingCell>> measure_grid(SoftmaxScalingSettings const& settings, StudyContext const& context);

/// The cells that a results.csv holds. Throws FileError for a line that is none.
std::vector<ScalingCell> cells_of(std::vector<std::vector<std::string>> const& csv, std::filesystem::path const& path);

/// The parts of the study's page.
std::vector<StudyPart> softmax_scaling_page(StudyRecord const& record);

/// What the study says of one power law, quantity ∝ d_k^slope over d_k ≥ 64.
struct Slope {
  std::string distribution, scale;
  std::int64_t keys = 0;
  Quantity quantity{};
  Line line;
  std::optional<double> theory;
};
std::vector<Slope> slopes_of(std::vector<ScalingCell> const& cells);

/// The tables and sentences that the cells give.
StudyResult report(SoftmaxScalingSettings const& settings, std::vector<ScalingCell> const& cells);

/// Heat maps over (d_k, n) by scale: entropy, typical and mean square Jacobian relative to those of uniform weights. Nothing if either has
/// one value only.
std::optional<Figure> saturation_maps(std::vector<ScalingCell> const& cells, std::string const& distribution,
                                      std::vector<std::string> const& scales);

/// (measured − exact)/standard error of all cells in their order, beside normal quantiles; nothing without theory.
std::optional<Figure> agreement_with_theory(std::vector<ScalingCell> const& cells);

/// What reaches the weights of each layer's queries before training, a panel for each place of the norms and scale; nothing without layers.
std::optional<Figure> layers_before_training(std::vector<ScalingCell> const& cells);
/// The first layer beside the last at the largest d_k, as HTML.
std::string table_of_layers(std::vector<ScalingCell> const& cells);

}  // namespace heed
