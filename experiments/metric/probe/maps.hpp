#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/metric/probe/settings.hpp"
#include "nn/model.hpp"

namespace heed {

/// Attention maps over training: `attention/step-000500.npz` in a run's folder, with the arrays of AttentionMaps, of the first rows of
/// validation (without such data, of training).
class AttentionMapWriter {
 public:
  /// Of a run that goes on from `step`: later maps are of another future and are removed. Throws Error.
  AttentionMapWriter(MapSettings const& settings, Model const& model, Dataset const& data, std::filesystem::path const& run,
                     std::int64_t step);

  /// Whether the weights after so many updates are to be shown.
  bool due(std::int64_t step, bool last) const { return settings_.examples > 0 && (last || step % settings_.every == 0); }
  /// Throws Error if the file cannot be written; it appears whole or not at all.
  void write(std::int64_t step) const;
  /// What write() has left, in the run's folder: "attention/step-000500.npz", in order.
  std::vector<std::string> files() const;

 private:
  MapSettings const& settings_;
  Model const& model_;
  Dataset const& data_;
  std::filesystem::path folder_;
};

}  // namespace heed
