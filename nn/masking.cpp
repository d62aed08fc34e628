#include "nn/masking.hpp"

#include <fmt/format.h>

namespace heed {

std::vector<Field> MaskingSettings::fields() {
  return {
      field(&share, "share", "share of the tokens that are chosen for prediction").between(0, 1),
      field(&mask, "mask", "share of the chosen tokens that are replaced by [MASK]").in(0, 1),
      field(&random, "random", "share of the chosen tokens that are replaced by a random token; the rest stay unchanged").in(0, 1),
  };
}

std::optional<std::string> MaskingSettings::contradiction() {
  if (mask + random > 1 + 1e-12) return fmt::format("random: {} and mask: {} add up to more than 1", random, mask);
  return std::nullopt;
}

}  // namespace heed
