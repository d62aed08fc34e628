#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/train/experiment.hpp"

namespace heed {

/// "NaN", "infinity" or "-infinity".
std::string name_of_non_finite(double value);

/// The first element that is not a finite number, as "tensor 'norm.weight' holds NaN at element 3"; nothing if there is none.
std::optional<std::string> find_non_finite(NamedTensors const& tensors);

/// Copies a file's values into the parameters. Throws FileError "PATH: …" for values that are not finite or do not match the model.
void assign_from(std::string const& path, NamedTensors const& values, Parameters& parameters);

/// What `init.from` has read, and a sentence on what was not copied unchanged; "": all was.
struct Start {
  HashedFile file;
  std::string remark;
};

/// Weights of another model: some are missing, left over or misshapen.
struct MisfitWeights : FileError {
  using FileError::FileError;
};

/// Initialises the parameters from a checkpoint, converting the dtype: a .safetensors file, or a run's folder (its best weights if it keeps
/// them, train.keep). Both models must read the same tokens: rows of embeddings are matched by token, and special tokens ([MASK], [CLS],
/// [extract]) that the checkpoint lacks keep their initial values, as do a head for labelled examples and segment embeddings; a head that
/// only the checkpoint has is dropped. Learned positions are truncated. `init.layers`: this many blocks are copied with the embeddings, the
/// rest keeps its initial values (Radford et al. 2018, section 5). Throws MisfitWeights, which begins with the path, that names every
/// other tensor that is missing, left over or misshapen; FileError for a damaged file and two vocabularies that differ, with both; Error if
/// `init.layers` exceeds the number of blocks.
Start start_from(Parameters& parameters, InitSettings const& init, Dataset const& data, std::filesystem::path const& path);

/// A configuration of this one section.
struct ModelSection : Settings {
  Choice model = model_choice();
  std::vector<Field> fields() override { return {field(&model, "model")}; }
};

/// The section `model` with which the weights of a run, a checkpoint, or a transformers folder were trained, every key with its value (keys
/// that an earlier revision did not know: the default); null if a file of weights says nothing. Throws FileError or ConfigError for what
/// cannot be read.
Yaml model_of_weights(std::filesystem::path const& path);

/// A key of the model, and "model.heads is 2, was 4".
struct ChangedKey {
  std::string key, words;
  bool function;  ///< of the weights
};

/// The keys in which a model differs from the one that its weights were trained in (`before`, as model_of_weights()); `function`: it is
/// another function of the weights by this key. Found by trying: if the model with the earlier value of a key alone, and these weights,
/// gives training batch 0 another output, or cannot be made. What acts in training alone (dropout, initial scales) is therefore none; a
/// section of another kind is one key. Left out is what transferring weights (start_from) names itself or allows: another head, more blocks
/// than init.layers, another context for learned positions.
std::vector<ChangedKey> changed_keys(Yaml const& before, Experiment settings, Model const& model, Parameters const& weights,
                                     Dataset const& data);

/// Where a run's settings find their files.
DataContext data_context(Folders const& folders);

/// Completes `model` by that of the weights in `init.from`: keys that the document leaves out get the weights' values. A section of another
/// kind, or of another variant of linear attention, is the document's alone. Does nothing, and returns false, without `init.from`, for
/// weights that are not there (training refuses them) and for a file of weights without a configuration. Throws FileError for a file that
/// is none, ConfigError for a configuration that cannot be read, and if weights are missing that would give the model.
bool inherit_model(Document& document, Folders const& folders);

}  // namespace heed
