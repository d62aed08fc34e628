#pragma once

#include <cstdint>
#include <functional>

#include "experiments/data/dataset.hpp"
#include "experiments/metric/probe/probe.hpp"
#include "experiments/metric/probe/settings.hpp"
#include "nn/model.hpp"

namespace heed {

/// Measures a run's probes. It reads parameters and their gradients, makes passes of its own that draw nothing from training's streams,
/// and changes neither: with probes a run has the same bits as without.
class Prober {
 public:
  /// `batch`: rows of the probes' batch, unless the settings say how many; `label_smoothing`: of the loss whose gradients are probed;
  /// `recompute`: whether a pass whose graph is differentiated twice keeps only what enters each block.
  Prober(ProbeSettings const& settings, std::int64_t batch, double label_smoothing, Model const& model, Parameters const& parameters,
         Dataset const& data, bool recompute = false)
      : settings_(settings),
        rows_(settings.rows.value_or(batch)),
        smoothing_(label_smoothing),
        model_(model),
        parameters_(parameters),
        data_(data),
        recompute_(recompute) {}

  /// Whether the weights after so many updates are to be probed.
  bool due(std::int64_t step, bool last) const { return settings_.any() && (last || step % settings_.every == 0); }
  /// What is seen on the probes' batch, with the weights as they are. `stepping`: a step follows, whose own pass shows the rest (watch).
  void observe(Row& row, bool stepping = false) const;
  /// The same of this batch in the place of the probes'.
  void look_at(Batch const& batch, Row& row, bool stepping = false) const {
    observe(row, stepping, [&] { return batch; });
  }
  /// Who watches a step's own pass: for probes that need no more, where the settings ask for that; else null.
  Observer const* watch();
  /// What was seen of a step: on the way, and of the gradient that it has left in the parameters.
  void read_step(Row& row);

 private:
  /// The probes asked for that look at a step, or the others.
  std::vector<Probe const*> asked(bool of_step, bool stepping) const;
  Batch batch() const;
  void observe(Row& row, bool stepping, std::function<Batch()> const& batch) const;
  Tensor loss(Batch const& batch, Observer const* observer) const;
  /// What a pass over the batch shows.
  Probed probed(Batch const& batch, std::vector<Probe const*> const& asked) const;
  /// Of random tokens that come twice.
  Probed probed_repetition() const;

  ProbeSettings const& settings_;
  std::int64_t rows_;
  double smoothing_;
  Model const& model_;
  Parameters const& parameters_;
  Dataset const& data_;
  bool recompute_;
  Observer observer_;
  AttentionRecorder recorder_{{}};   // of a step's pass, or its passes
  std::vector<Tensor> streams_;      // likewise
  std::vector<std::string> blocks_;  // the names of the blocks of streams_
};

}  // namespace heed
