#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "autograd/tensor.hpp"

namespace heed {

/// A partly measured cell of a study, as tensors by name: measuring resumes from it, with the same bits.
using PartOfCell = std::map<std::string, Tensor>;

/// Saves it in a sealed file (sha256.hpp); empty path: does nothing. Throws Error if it cannot be written.
void keep_part(std::filesystem::path const& file, PartOfCell const& part);

/// The part that keep_part() saved; empty if missing or damaged: the cell is then measured from the start.
PartOfCell kept_part(std::filesystem::path const& file);

}  // namespace heed
