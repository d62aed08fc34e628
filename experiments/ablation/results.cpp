#include "experiments/ablation/results.hpp"

#include <nlohmann/json.hpp>

#include "experiments/ablation/summary.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

std::string write_results(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned) {
  Summary const summary = summarise(ablation, jobs, tuned);
  write_csv(ablation, tuned, summary.arms);
  write_probes(ablation, summary.arms);
  write_atomically(ablation.folder() / "summary.json", json_text(summary_json(summary), 2) + "\n");
  write_atomically(ablation.folder() / "summary.md", summary_markdown(summary));
  return summary_page(summary);
}

}  // namespace heed
