#pragma once

#include "nn/settings.hpp"

namespace heed {

/// `masking: {share, mask, random}`: of masked language modelling (Devlin et al. 2019, section 3.1).
struct MaskingSettings : Settings {
  double share = 0.15;  ///< of the tokens that are chosen
  double mask = 0.8;    ///< of these, the share that [MASK] replaces
  double random = 0.1;  ///< and the share that a random token does; the rest are kept
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

}  // namespace heed
