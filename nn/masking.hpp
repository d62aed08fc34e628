#pragma once

#include "nn/settings.hpp"

namespace heed {

/// `masking: {share, mask, random}`: masked language modelling (Devlin et al. 2019, section 3.1).
struct MaskingSettings : Settings {
  double share = 0.15;  ///< fraction of the tokens that are chosen
  double mask = 0.8;    ///< fraction of these that become [MASK]
  double random = 0.1;  ///< fraction of these that become a random token; the rest are kept
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

}  // namespace heed
