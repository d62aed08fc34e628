#pragma once

#include "experiments/data/dataset.hpp"
#include "experiments/metric/probe/probe.hpp"
#include "experiments/metric/probe/settings.hpp"
#include "nn/model.hpp"

namespace heed {

/// Measures a run's probes. Its own passes draw from separate streams: with probes a run has the same bits as without.
class Prober {
 public:
  /// `batch`: sequences of the probes' batch, unless the settings give a number; `label_smoothing`: of the loss whose gradients are probed;
  /// `recompute`: whether a pass whose graph is differentiated twice keeps only the inputs of each block.
  Prober(ProbeSettings const& settings, Index batch, double label_smoothing, Model const& model, Parameters const& parameters,
         Dataset const& data, bool recompute = false)
      : settings_(settings),
        rows_(settings.rows.value_or(batch)),
        smoothing_(label_smoothing),
        model_(model),
        parameters_(parameters),
        data_(data),
        recompute_(recompute) {}

  /// Whether probes are due after this many updates.
  bool due(Index step, bool last) const { return settings_.any() && (last || step % settings_.every == 0); }
  /// Measures on the probes' batch with the current weights. `stepping`: a step follows, whose own pass provides the rest (watch).
  void observe(Row& row, bool stepping = false) const;
  /// The observer of a step's own pass, for probes that need no other pass, if the settings ask for it; else null.
  Observer const* watch();
  /// The measurements of a step: from its pass, and from the gradients in the parameters.
  void read_step(Row& row);

 private:
  /// The requested probes that need a step, or the others.
  std::vector<Probe const*> selected(bool of_step, bool stepping) const;
  Tensor loss(Batch const& batch, Observer const* observer) const;
  /// The probes' input from a pass over the batch.
  Probed probed(Batch const& batch, std::vector<Probe const*> const& selected) const;

  ProbeSettings const& settings_;
  Index rows_;
  double smoothing_;
  Model const& model_;
  Parameters const& parameters_;
  Dataset const& data_;
  bool recompute_;
  Observer observer_;
  AttentionRecorder recorder_{{}};   // of a step's passes
  std::vector<Tensor> streams_;      // likewise
  std::vector<std::string> blocks_;  // the names of the blocks of streams_
};

}  // namespace heed
