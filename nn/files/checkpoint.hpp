#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.hpp"

namespace heed {

/// What is needed to go on: parameters in `checkpoint.safetensors`, which is sealed (sha256.hpp), everything else in
/// `state-STEP.safetensors`, whose hash stands in it.
struct Checkpoint {
  using Tensors = std::vector<std::pair<std::string, Tensor>>;
  std::int64_t step = 0;  ///< updates made
  Tensors parameters;
  Tensors state;                                      ///< optimizer, averaged weights
  std::map<std::string, std::string> metadata;        ///< of the parameters' file: what a reader of the model needs
  std::map<std::string, std::string> state_metadata;  ///< what resuming needs
};

/// Writes a checkpoint as one commit: the state's file first, then the parameters' file, which names that state and its hash, replaces
/// the old one by rename; older states are removed last. Killed at any moment, the folder holds the old checkpoint or the new one,
/// whole. Throws Error (disk full, …), with the old one still in place.
void save_checkpoint(std::filesystem::path const& folder, Checkpoint const& checkpoint);

/// Reads a folder's checkpoint, with its state unless only the model is wanted. Throws FileError if it is missing or damaged, by a
/// single byte too, or if the state is not the one that belongs to it.
Checkpoint load_checkpoint(std::filesystem::path const& folder, bool with_state = true);

/// The weights of another step than the last beside the checkpoint, `best.safetensors`: sealed and replaced in one step as it is, without a
/// state. Throws Error (disk full, …), with the old one still in place.
void save_best(std::filesystem::path const& folder, Checkpoint const& checkpoint);
/// Throws FileError if it is missing or damaged.
Checkpoint load_best(std::filesystem::path const& folder);
bool has_best(std::filesystem::path const& folder);
std::filesystem::path best_file(std::filesystem::path const& folder);

/// Removes states that are not of this step, and parts of states: what a process left that was killed after its checkpoint's rename, or on
/// the way to the next. What cannot be removed stays.
void remove_other_states(std::filesystem::path const& folder, std::int64_t step);

bool has_checkpoint(std::filesystem::path const& folder);

}  // namespace heed
