#pragma once

#include <fmt/format.h>

#include "nn/settings.hpp"

namespace heed {

/// `masking: {share, mask, random}`: masked language modelling (Devlin et al. 2019, section 3.1).
struct MaskingSettings : Settings {
  double share = 0.15;  ///< fraction of the tokens that are chosen
  double mask = 0.8;    ///< fraction of these that become [MASK]
  double random = 0.1;  ///< fraction of these that become a random token; the rest are kept

  std::vector<Field> fields() override {
    return {
        field(&share, "share", "share of the tokens that are chosen for prediction").between(0, 1),
        field(&mask, "mask", "share of the chosen tokens that are replaced by [MASK]").in(0, 1),
        field(&random, "random", "share of the chosen tokens that are replaced by a random token; the rest stay unchanged").in(0, 1),
    };
  }
  std::optional<std::string> contradiction() override {
    if (mask + random > 1 + 1e-12) return fmt::format("random: {} and mask: {} add up to more than 1", random, mask);
    return std::nullopt;
  }
};

}  // namespace heed
