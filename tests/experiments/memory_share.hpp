#pragma once

#include <doctest/doctest.h>

#include "autograd/memory.hpp"
#include "experiments/metric/probe/prober.hpp"
#include "experiments/run/memory_estimate.hpp"
#include "experiments/run/train.hpp"

namespace heed::test {

/// The memory estimate is within 20 % of the peak of two steps and a look of the probes.
inline void check_estimate(LoadedExperiment const& loaded) {
  std::int64_t const before = memory_use().live;
  Trainer trainer(loaded, true);
  reset_memory_peak();
  Row row;
  trainer.train_step(row);
  trainer.train_step(row);
  auto const& train = loaded.settings.train;
  Prober(loaded.settings.probes, train.batch, train.label_smoothing, trainer.model(), trainer.parameters(), trainer.data(), train.recompute)
      .observe(row);
  double const peak = static_cast<double>(memory_use().peak - before);
  double const share = memory_estimate(loaded.settings, trainer.data(), trainer.model(), trainer.parameters()).total() / peak;
  CHECK(share > 0.8);
  CHECK(share < 1.2);
}

}  // namespace heed::test
