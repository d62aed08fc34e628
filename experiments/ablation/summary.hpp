#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/ablation/arm_result.hpp"
#include "experiments/ablation/effects.hpp"
#include "experiments/ablation/trends.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/config/table.hpp"

namespace heed {

/// A job that failed, and whose it is: an arm's, or an arm's at a point of the tuning grid.
struct FailedJob {
  std::string who;
  Job const* job;
};

/// What an ablation's trials say together: all that its tables, its summary.json and its report are written from.
struct Summary {
  Ablation const& ablation;
  std::vector<Job> const& jobs;
  TuningResult const& tuned;
  Question question{};
  std::vector<ArmResult> arms{};
  std::vector<std::optional<Estimate>> means{};          ///< by arm; nothing of one without values
  std::vector<std::optional<Comparison>> comparisons{};  ///< by arm, with the baseline; nothing without a seed that both have
  NumberFormat format{0};                                ///< of the metric
  std::vector<Effect> effects{};
  std::vector<Trend> trends{};
  std::vector<FailedJob> failures{};
  std::vector<std::string> sentences{}, warnings{};

  /// What tuning chose for an arm, as "lr 3.0e-3"; empty without tuning.
  std::string tuned_words(std::size_t arm) const;
  /// "scaled", or "scaled (lr 3.0e-3)".
  std::string name_with_tuned(std::size_t arm) const;
  std::string unit() const;
  /// Which value of a trial counts, in a word: last, best, or kept where trials keep their best weights.
  std::string at() const;
  /// Of training.
  std::int64_t steps() const;
};

/// Throws FileError for a damaged trial. Keeps references to what it is given.
Summary summarise(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned);

/// As summary.json.
nlohmann::ordered_json summary_json(Summary const& summary);
/// As summary.md.
std::string summary_markdown(Summary const& summary);
/// For the terminal.
std::string summary_page(Summary const& summary);

}  // namespace heed
