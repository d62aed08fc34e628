#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.hpp"

namespace heed {

/// The state for resuming: parameters in `checkpoint.safetensors`, which is sealed (sha256.hpp), everything else in
/// `state-STEP.safetensors`, whose hash the first file holds.
struct Checkpoint {
  using Tensors = std::vector<std::pair<std::string, Tensor>>;
  Index step = 0;  ///< updates made
  Tensors parameters;
  Tensors state;                                      ///< optimizer and averaged weights
  std::map<std::string, std::string> metadata;        ///< for the parameters' file: what a reader of the model needs
  std::map<std::string, std::string> state_metadata;  ///< what resuming needs
};

/// Writes a checkpoint atomically: first the state, then the parameters' file, which names that state and its hash and replaces the old one
/// by rename; finally older states are removed. If the process is killed, the folder holds the complete old or new checkpoint. Throws Error
/// (disk full, …), leaving the old one in place.
void save_checkpoint(std::filesystem::path const& folder, Checkpoint const& checkpoint);

/// Reads a folder's checkpoint, with its state unless only the model is wanted. Throws FileError if it is missing or damaged, even by one
/// byte, or if the state belongs to another checkpoint.
Checkpoint load_checkpoint(std::filesystem::path const& folder, bool with_state = true);

/// Writes weights of an earlier step beside the checkpoint as `best.safetensors`, sealed and replaced atomically, without a state. Throws
/// Error (disk full, …), leaving the old one in place.
void save_best(std::filesystem::path const& folder, Checkpoint const& checkpoint);
/// Throws FileError if it is missing or damaged.
Checkpoint load_best(std::filesystem::path const& folder);
bool has_best(std::filesystem::path const& folder);
std::filesystem::path best_file(std::filesystem::path const& folder);

/// Removes the states of other steps, left by a process that was killed while saving. Files that cannot be removed stay.
void remove_other_states(std::filesystem::path const& folder, Index step);

bool has_checkpoint(std::filesystem::path const& folder);

}  // namespace heed
