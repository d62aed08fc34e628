#pragma once

#include <optional>
#include <string>

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

}  // namespace heed
