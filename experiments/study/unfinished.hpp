#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "autograd/tensor.hpp"

namespace heed {

/// What is done of a cell of a study when an interruption comes, as tensors by name: who measures the cell goes on with them where it was,
/// and comes to the same bits.
using PartOfCell = std::map<std::string, Tensor>;

/// Leaves it in a sealed file (sha256.hpp); an empty path: it is not kept. Throws Error if it cannot be written.
void keep_part(std::filesystem::path const& file, PartOfCell const& part);

/// What keep_part() left; empty if there is none, or if it is damaged: the cell is then measured from its beginning.
PartOfCell kept_part(std::filesystem::path const& file);

}  // namespace heed
