#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "autograd/index.hpp"

namespace heed {

/// A metric's name in its parts. As text SPLIT.NAME[.layerL[.headH][.STATISTIC]][.lengthN]: "loss", "validation.ema.loss.length64",
/// "probe.gradients.jacobian_trace.layer0.head1.median".
struct MetricKey {
  std::string split = {};       ///< validation, validation.ema, probe, time, memory; empty: of training steps
  std::string name = {};        ///< loss, attention.entropy
  Index layer = -1, head = -1;  ///< −1: of all
  std::string statistic = {};   ///< of a layer's or a head's values instead of their mean: median
  Index length = -1;            ///< of the sequences, in tokens; −1: as they are

  /// Reads any text: what fits into no other part belongs to the name, so that of(text).text() is the text.
  static MetricKey of(std::string_view text);
  std::string text() const;
  /// "probe.NAME.layerL", or "probe.NAME.layerL.headH".
  static MetricKey of_probe(std::string name, std::size_t layer, Index head = -1);

  bool is_held_out() const { return split == "validation" || is_averaged(); }
  bool is_averaged() const { return split == "validation.ema"; }
  bool is_probe() const { return split == "probe"; }
  /// A time or a memory size, which may differ between equal runs.
  bool is_cost() const { return split == "time" || split == "memory"; }
  bool operator==(MetricKey const&) const = default;
};

}  // namespace heed
