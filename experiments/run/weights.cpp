#include "experiments/run/weights.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {

std::string name_of_non_finite(double value) { return std::isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity"; }

namespace {

template <class T>
std::optional<std::string> find_non_finite(std::string const& name, Tensor const& tensor) {
  auto const values = tensor.data<T>();
  auto const found = std::ranges::find_if(values, [](T value) { return !std::isfinite(value); });
  if (found == values.end()) return std::nullopt;
  return fmt::format("tensor '{}' holds {} at element {}", name, name_of_non_finite(static_cast<double>(*found)), found - values.begin());
}

}  // namespace

std::optional<std::string> find_non_finite(NamedTensors const& tensors) {
  for (auto const& [name, tensor] : tensors) {
    auto found = tensor.dtype() == DType::float32   ? find_non_finite<float>(name, tensor)
                 : tensor.dtype() == DType::float64 ? find_non_finite<double>(name, tensor)
                                                    : std::nullopt;
    if (found) return found;
  }
  return std::nullopt;
}

void assign_from(std::string const& path, NamedTensors const& values, Parameters& parameters) {
  for (auto const& [name, value] : values) {
    if (value.dtype() == DType::int64) throw FileError(fmt::format("{}: tensor '{}' is int64, and no weights", path, name));
  }
  if (auto const damage = find_non_finite(values)) throw FileError(fmt::format("{}: {}: the weights are damaged", path, *damage));
  try {
    parameters.assign(values);
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace heed
