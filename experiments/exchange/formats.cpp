#include "experiments/exchange/formats.hpp"

#include <algorithm>

#include "nn/files/input_file.hpp"

namespace heed {

namespace fs = std::filesystem;

std::string_view kind_of_results(fs::path const& folder) {
  if (is_file(folder / "ablation.yaml")) return "ablation";
  return is_file(folder / "metrics.jsonl") ? "run" : "";
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
