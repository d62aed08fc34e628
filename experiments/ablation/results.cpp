#include "experiments/ablation/results.hpp"

#include <nlohmann/json.hpp>

#include "experiments/ablation/summary.hpp"
#include "experiments/run/result_file.hpp"
#include "nn/files/atomic_file.hpp"

namespace heed {

std::string write_results(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned) {
  Summary const summary = summarise(ablation, jobs, tuned);
  write_csv(ablation, tuned, summary.arms);
  write_probes(ablation, summary.arms);
  write_atomically(ablation.folder() / "summary.md", summary_markdown(summary));
  write_summary(ablation.folder(), summary_json(summary), {"results.csv", "probes.npz", "summary.md"});
  return summary_page(summary);
}

}  // namespace heed
