#include "experiments/exchange/formats.hpp"

#include <algorithm>

namespace heed {

namespace fs = std::filesystem;

std::string_view kind_of_results(fs::path const& folder) {
  std::error_code unreadable;
  if (fs::is_regular_file(folder / "ablation.yaml", unreadable)) return "ablation";
  return fs::is_regular_file(folder / "metrics.jsonl", unreadable) ? "run" : "";
}

std::vector<fs::path> trials_in(fs::path const& ablation) {
  std::vector<fs::path> trials;
  for (auto const& entry : fs::directory_iterator(ablation)) {
    bool const put_aside = entry.path().filename().string().find(".old-") != std::string::npos;
    if (!put_aside && kind_of_results(entry.path()) == "run") trials.push_back(entry.path());
  }
  std::ranges::sort(trials);
  return trials;
}

}  // namespace heed
