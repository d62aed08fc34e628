#include "nn/files/checkpoint.hpp"

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/number.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

fs::path model_file(fs::path const& folder) { return folder / "checkpoint.safetensors"; }

std::string state_name(Index step) { return fmt::format("state-{}.safetensors", step); }

Checkpoint::Tensors all_tensors(SafetensorsFile const& file) {
  return mapped(file.names(), [&](std::string const& name) { return std::pair(name, file.tensor(name)); });
}

std::string required(SafetensorsFile const& file, std::string const& key) {
  auto const found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw FileError(fmt::format("{}: its metadata lack '{}': not a checkpoint of heed", file.path().string(), key));
  return found->second;
}

Index step_of(SafetensorsFile const& file) {
  std::string const text = required(file, "step");
  auto const step = parsed_number<Index>(text);
  if (!step || *step < 0) throw FileError(fmt::format("{}: the step '{}' is not a number of updates", file.path().string(), text));
  return *step;
}

/// A file's step, parameters and metadata.
Checkpoint weights_of(SafetensorsFile const& file) {
  file.check_seal();
  return {.step = step_of(file), .parameters = all_tensors(file), .state = {}, .metadata = file.metadata(), .state_metadata = {}};
}

void save_weights(fs::path const& path, Checkpoint const& checkpoint, std::map<std::string, std::string> metadata) {
  metadata["step"] = std::to_string(checkpoint.step);
  metadata[std::string(seal_name)] = open_seal();
  save_safetensors(path, checkpoint.parameters, metadata);
}

}  // namespace

fs::path best_file(fs::path const& folder) { return folder / "best.safetensors"; }

void save_best(fs::path const& folder, Checkpoint const& checkpoint) { save_weights(best_file(folder), checkpoint, checkpoint.metadata); }

Checkpoint load_best(fs::path const& folder) { return weights_of(SafetensorsFile(best_file(folder))); }

bool has_best(fs::path const& folder) { return fs::exists(best_file(folder)); }

void remove_other_states(fs::path const& folder, Index step) {
  remove_named(folder, [kept = state_name(step)](std::string const& name) {
    return name.starts_with("state-") && name.ends_with(".safetensors") && name != kept;
  });
}

void save_checkpoint(fs::path const& folder, Checkpoint const& checkpoint) {
  std::string const state = state_name(checkpoint.step);
  auto state_metadata = checkpoint.state_metadata;
  state_metadata["step"] = std::to_string(checkpoint.step);
  save_safetensors(folder / state, checkpoint.state, state_metadata);
  auto metadata = checkpoint.metadata;
  metadata["state"] = state;
  metadata["state_sha256"] = sha256_of_file(folder / state);
  save_weights(model_file(folder), checkpoint, std::move(metadata));
  remove_other_states(folder, checkpoint.step);  // the checkpoint is whole already
}

Checkpoint load_checkpoint(fs::path const& folder, bool with_state) {
  SafetensorsFile const file(model_file(folder));
  Checkpoint checkpoint = weights_of(file);
  if (!with_state) return checkpoint;
  std::string const name = required(file, "state");
  if (name != state_name(checkpoint.step))
    throw FileError(fmt::format("{}: names the state '{}', which is not of step {}", file.path().string(), name, checkpoint.step));
  fs::path const path = folder / name;
  if (sha256_of_file(path) != required(file, "state_sha256"))
    throw FileError(fmt::format("{}: is not the state that {} was written with", path.string(), file.path().string()));
  SafetensorsFile const state(path);
  checkpoint.state = all_tensors(state);
  checkpoint.state_metadata = state.metadata();
  return checkpoint;
}

bool has_checkpoint(fs::path const& folder) { return fs::exists(model_file(folder)); }

}  // namespace heed
