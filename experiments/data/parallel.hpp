#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/data/open.hpp"

namespace heed {

/// `data: {kind: parallel, train: multi30k/tok/train.lc.norm.tok, validation: multi30k/tok/val.lc.norm.tok, from: de, to: en}`
struct ParallelSettings : Settings {
  std::string train, from, to;
  std::optional<std::string> validation, test;
  std::string vocabularies = "joint";
  Index least_count = 2;
  std::optional<Index> longest;
  Index pool = 100;
  std::optional<Index> tokens;

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

}  // namespace heed
