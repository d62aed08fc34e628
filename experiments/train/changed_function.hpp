#pragma once

#include <string>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/train/experiment.hpp"

namespace heed {

/// `model:` alone, as a configuration of this one section.
struct ModelSection : Settings {
  Choice model = model_choice();
  std::vector<Field> fields() override { return {field(&model, "model")}; }
};

/// A key of the model, and "model.heads is 2, was 4".
struct ChangedKey {
  std::string key, words;
};

/// The keys by which a model is another function of its weights than the one with which a configuration was written. Found by trying: if
/// the model with the earlier value of a key alone, and these weights, gives training batch 0 another output, or cannot be made. What acts
/// in training alone (dropout, initial scales) is therefore none; a section of another kind is one key. Left out is what transferring
/// weights (start_from) names itself or allows: another head, more blocks than init.layers, another context for learned positions.
std::vector<ChangedKey> changed_function(Yaml const& configuration, Experiment settings, Model const& model, Parameters const& weights,
                                         Dataset const& data);

}  // namespace heed
