#pragma once

#include "experiments/train/train.hpp"
#include "tests/test.hpp"

// Configurations that stand in no file, and the values of a row.

namespace heed::test {

/// The experiment that a text describes.
inline LoadedExperiment written(std::string const& text) {
  LoadedExperiment loaded{parse(text, "test"), {}, {}};
  fill(loaded.document, loaded.settings);
  return loaded;
}

/// What a row records, each name once.
inline std::map<std::string, double> by_name(Row const& row) {
  std::map<std::string, double> result;
  for (auto const& each : row.values) CHECK_MESSAGE(result.insert(each).second, each.first << " is recorded twice");
  return result;
}

}  // namespace heed::test
