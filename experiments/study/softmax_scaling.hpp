#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "experiments/study/saturation.hpp"
#include "experiments/study/study.hpp"

namespace heed {

/// `study: {kind: softmax_scaling}`: how softmax saturates as d_k grows, with and without a scale, beside the theory.
struct SoftmaxScalingSettings : Settings {
  std::vector<double> d_k{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  std::vector<double> keys{2, 4, 8, 10, 16, 32, 64, 128, 256};
  std::vector<std::string> scale{"none", "rsqrt", "inverse"};
  std::vector<std::string> distribution{"logits", "gaussian", "uniform", "rademacher"};
  double precision = 0.01;
  double limit = 2e9;
  std::optional<std::string> run;  ///< its heads are further distributions
  std::int64_t sequences = 256;

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// One number of the study.
struct Measured {
  double mean = 0, standard_error = 0;
  std::optional<double> theory;
};

/// A cell of the grid: what was measured under one scale. What does not exist is absent: gradients by queries where
/// there are none, and a median that lies between two values of few (rademacher).
struct Cell {
  std::string distribution, scale;
  std::int64_t d_k = 0, keys = 0;
  std::array<std::optional<Measured>, quantities> values{};

  Measured const* get(Quantity q) const {
    auto const& value = values[static_cast<std::size_t>(q)];
    return value ? &*value : nullptr;
  }
};

/// All cells of the grid, and of the run's heads; nothing if it was interrupted.
std::optional<std::vector<Cell>> measure_grid(SoftmaxScalingSettings const& settings, StudyContext const& context);

/// The tables and sentences that the cells give.
StudyResult report(SoftmaxScalingSettings const& settings, std::vector<Cell> const& cells);

}  // namespace heed
