#include "experiments/ablation/keys.hpp"

#include <algorithm>

namespace heed {

std::vector<AblationKey> const& ablation_keys() {
  static std::vector<AblationKey> const all{
      {"ablation", "its name, and its folder's", "ablation: positions"},
      {"base", "the run that arms change: its file, relative to this file, or its keys themselves", "base: ../gpt/grammar.yaml"},
      {"paths", "the folder in which relative paths of the base begin, relative to this file (default: that of the base's file)",
       "paths: ../gpt"},
      {"set", "keys of the base with the values that they have in every arm", "set: {train.steps: 100}"},
      {"vary", "keys of the base with lists of values: every combination is an arm",
       "vary: {model.position: [learned, rotary], model.heads: [1, 2]}"},
      {"together", "keys whose values move in step: the first of each, the second of each, …",
       "together: {model.width: [64, 128], train.optimizer.lr: [2.0e-3, 1.0e-3]}"},
      {"add", "further arms by name, with what they change", "add: {wide: {model.width: 256}}"},
      {"skip", "combinations of vary and together that are left out", "skip: [{model.position: rotary, model.heads: 2}]"},
      {"seeds", "how many (from 1 on), or which; every arm is trained with each", "seeds: 6"},
      {"baseline", "the arm that others are compared with: its name, or its values, however they are written (default: the first)",
       "baseline: {model.position: learned, model.heads: 1}"},
      {"metric", "what is compared (heed list metrics)", "metric: validation.accuracy"},
      {"better", "lower or higher, where the metric does not say (default: as the metric says)", "better: higher"},
      {"at", "which value of a trial counts: the last, or the best", "at: best"},
      {"margin", "the difference below which you do not care; without it no arm is called equivalent", "margin: 0.01"},
      {"tune", "a grid from which every arm takes its best point, on seeds of its own: which, or how many from 10001 on",
       "tune: {grid: {train.optimizer.lr: [1.0e-3, 3.0e-3]}, seeds: 2}"},
      {"published", "what others have reported of the metric, shown beside: a number, or numbers by step",
       "published: {a tutorial's run: {1000: 0.225, 7000: 0.954}}"},
  };
  return all;
}

std::string const& ablation_help(std::string const& name) { return std::ranges::find(ablation_keys(), name, &AblationKey::name)->help; }

}  // namespace heed
