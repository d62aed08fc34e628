#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run/exchange/portable_model.hpp"

namespace heed {

/// Files in which another program reads a trained model, declared beside what writes them: `heed export RUN DIR --format NAME`.
struct ModelFormat {
  std::string name, help;
  /// What of a model it has no word for, in one line; nothing: it can be written.
  std::function<std::optional<std::string>(PortableModel const& model)> unavailable;
  /// Writes such a model into an empty folder. What its user must know besides, a line each. Throws Error if it cannot be written.
  std::function<std::vector<std::string>(PortableModel const& model, std::filesystem::path const& folder)> write;
};

}  // namespace heed
