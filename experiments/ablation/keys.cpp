#include "experiments/ablation/keys.hpp"

#include <algorithm>

namespace heed {

std::vector<AblationKey> const& ablation_keys() {
  static std::vector<AblationKey> const all{
      {"ablation", "name of the ablation and of its folder", "ablation: positions"},
      {"base", "the run that the arms modify: a file, relative to this file, or the keys themselves", "base: ../gpt/grammar.yaml"},
      {"paths", "folder to which paths in the base are relative, itself relative to this file (default: the folder of the base's file)",
       "paths: ../gpt"},
      {"set", "keys of the base that are changed in all arms", "set: {train.steps: 100}"},
      {"vary", "keys of the base with lists of values: every combination is an arm",
       "vary: {model.position: [learned, rotary], model.heads: [1, 2]}"},
      {"together", "keys whose values vary jointly: the first of each, the second of each, …",
       "together: {model.width: [64, 128], train.optimizer.lr: [2.0e-3, 1.0e-3]}"},
      {"add", "further arms by name, with the keys that they change", "add: {wide: {model.width: 256}}"},
      {"skip", "combinations of vary and together that are left out", "skip: [{model.position: rotary, model.heads: 2}]"},
      {"seeds", "number of seeds (1, 2, …), or a list of them; every arm is trained with each", "seeds: 6"},
      {"baseline", "the arm with which the others are compared: its name or its values (default: the first arm)",
       "baseline: {model.position: learned, model.heads: 1}"},
      {"metric", "the metric that is compared (heed list metrics)", "metric: validation.accuracy"},
      {"better", "lower or higher, for metrics that do not define it (default: as the metric defines)", "better: higher"},
      {"at", "which value of a trial is compared: the last, or the best", "at: best"},
      {"margin", "equivalence margin: the largest difference that does not matter; without it no arm is called equivalent", "margin: 0.01"},
      {"tune", "a grid from which the best point of every arm is selected, on separate seeds: a list, or their number (10001, 10002, …)",
       "tune: {grid: {train.optimizer.lr: [1.0e-3, 3.0e-3]}, seeds: 2}"},
      {"published", "published values of the metric, shown for comparison: a number, or numbers by step",
       "published: {a tutorial's run: {1000: 0.225, 7000: 0.954}}"},
  };
  return all;
}

std::string const& ablation_help(std::string const& name) { return std::ranges::find(ablation_keys(), name, &AblationKey::name)->help; }

}  // namespace heed
