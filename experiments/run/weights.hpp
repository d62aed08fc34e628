#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "experiments/data/dataset.hpp"
#include "experiments/data/files.hpp"
#include "nn/optimizer.hpp"
#include "nn/parameters.hpp"

namespace heed {

/// "NaN", "infinity" or "-infinity".
std::string name_of_non_finite(double value);

/// The first element that is not a finite number, as "tensor 'norm.weight' holds NaN at element 3"; nothing if there is none.
std::optional<std::string> find_non_finite(NamedTensors const& tensors);

/// Gives the parameters the values of a file. Throws FileError, which begins with the path, for values that are not finite numbers or that
/// are not the model's.
void assign_from(std::string const& path, NamedTensors const& values, Parameters& parameters);

/// What `init.from` gave: the file with its hash, and what was not taken as it was, in words; "": all was.
struct Start {
  HashedFile file;
  std::string remark;
};

/// Gives the parameters the values of a checkpoint, converting the dtype: a .safetensors file, or a run's folder (its best
/// weights where it keeps them, train.keep). Both read the same
/// tokens: rows of embeddings go by the token, so that special tokens ([MASK], [CLS], [extract]) which the other had not, start as they
/// were drawn. The same holds for a head for labelled examples and for segment embeddings; a head that the other had is left. Of learned
/// positions the first are taken. `init.layers`: as many blocks are taken with the embeddings, the rest starts as it was drawn (Radford et
/// al. 2018, section 5). Throws FileError, which begins with the path, that names every other tensor that is missing, left over or
/// misshapen, and both vocabularies where they differ; Error for `init.layers` that are more than there are.
Start start_from(Parameters& parameters, InitSettings const& init, Dataset const& data, std::filesystem::path const& path);

}  // namespace heed
