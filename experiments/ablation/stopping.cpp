#include <algorithm>
#include <cmath>

#include "experiments/ablation/tuning.hpp"
#include "experiments/metric/evidence.hpp"

namespace heed {

namespace {

/// The trials of a comparison as a table of arms and seeds, and who is still in it.
class SeedsByArm {
 public:
  SeedsByArm(Ablation const& ablation, std::vector<Job>& jobs)
      : ablation_(ablation), table_(ablation.arms.size(), std::vector<Job*>(ablation.seeds.size())), in_(ablation.arms.size(), false) {
    for (Job& job : jobs) {
      auto const seed = std::ranges::find(ablation.seeds, job.seed) - ablation.seeds.begin();
      table_[job.arm][static_cast<std::size_t>(seed)] = &job;
      in_[job.arm] = true;
    }
  }

  bool give_out(Index at_a_time) {
    Index open = 0, in_reserve = 0;
    std::vector<Job*> spared;
    for (std::size_t seed = 0; seed < ablation_.seeds.size(); ++seed) {
      for (std::size_t arm = 0; arm < in_.size(); ++arm) {
        Job* const job = table_[arm][seed];
        if (job == nullptr) continue;
        bool const ahead = open > 0 && in_reserve >= at_a_time;  // seeds that follow wait until those before have told
        if (!in_[arm] || (ahead && !job->has_ended()))
          spared.push_back(job);
        else if (!job->has_ended()) {
          if (job->state == Job::State::spared) job->state = Job::State::waiting;
          ++in_reserve;
        }
      }
      if (open == 0) open = in_reserve;
      if (open == 0) leave_after(seed + 1);
    }
    for (Job* const job : spared) spare(*job);
    return open > 0;
  }

 private:
  /// A trial that was trained ahead may turn out not to be needed: it counts as if it were not there.
  static void spare(Job& job) {
    if (job.state == Job::State::running || job.state == Job::State::other_shard) return;
    job.state = Job::State::spared;
    job.value.reset();
    job.history.reset();
  }

  double value(std::size_t arm, std::size_t seed) const {
    Job const& job = *table_[arm][seed];
    double const worst = ablation_.settings.higher_is_better() ? -INFINITY : INFINITY;
    if (job.state == Job::State::failed) return job.failure.diverged ? worst : std::nan("");
    return std::isnan(*job.value) ? worst : *job.value;
  }

  /// Over the first seeds, of those that both have.
  std::vector<double> differences(std::size_t arm, std::size_t other, std::size_t seeds) const {
    std::vector<double> all;
    for (std::size_t seed = 0; seed < seeds; ++seed)
      if (double const each = value(arm, seed) - value(other, seed); !std::isnan(each)) all.push_back(each);
    return all;
  }

  double mean(std::size_t arm, std::size_t seeds) const {
    double sum = 0;
    for (std::size_t seed = 0; seed < seeds; ++seed) sum += value(arm, seed);
    return sum;
  }

  void leave_after(std::size_t seeds) {
    auto const& settings = ablation_.settings;
    std::size_t const baseline = ablation_.baseline;
    Question const question{.better = settings.higher_is_better() ? Better::higher : Better::lower, .margin = settings.margin.value_or(0)};
    double const sign = question.better == Better::higher ? -1 : 1;
    std::vector<std::size_t> present;
    for (std::size_t arm = 0; arm < in_.size(); ++arm)
      if (in_[arm]) present.push_back(arm);
    if (present.empty()) return;
    auto const best = *std::ranges::min_element(present, {}, [&](std::size_t arm) {
      double const score = sign * mean(arm, seeds);
      return std::isnan(score) ? INFINITY : score;
    });
    for (auto const arm : present) {
      if (arm == baseline) continue;
      auto losses = differences(arm, best, seeds);
      for (double& each : losses) each *= sign;
      if (settings.stop_losers && arm != best &&
          is_above(question.margin, losses, question.significance() / static_cast<double>(in_.size() - 1)))
        in_[arm] = false;
      if (settings.until_verdict && table_[baseline].front() != nullptr && seeds >= static_cast<std::size_t>(*settings.until_verdict) &&
          pairs_until_verdict(differences(arm, baseline, seeds), question, in_.size() - 1))
        in_[arm] = false;
    }
    bool const others = std::ranges::any_of(present, [&](std::size_t arm) { return arm != baseline && in_[arm]; });
    if (!others && present.size() > 1) in_[baseline] = false;
  }

  Ablation const& ablation_;
  std::vector<std::vector<Job*>> table_;  ///< [arms, seeds]; null for an arm that is not compared
  std::vector<bool> in_;                  ///< per arm, whether it gets the next seed
};

}  // namespace

bool give_out_seeds(Ablation const& ablation, std::vector<Job>& jobs, Index at_a_time) {
  return SeedsByArm(ablation, jobs).give_out(at_a_time);
}

}  // namespace heed
