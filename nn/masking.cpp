#include "nn/masking.hpp"

#include <fmt/format.h>

namespace heed {

std::vector<Field> MaskingSettings::fields() {
  return {
      {.name = "share",
       .target = &share,
       .help = "share of the tokens that are chosen for prediction",
       .least = 0,
       .greatest = 1,
       .open = true},
      {.name = "mask", .target = &mask, .help = "share of the chosen tokens that are replaced by [MASK]", .least = 0, .greatest = 1},
      {.name = "random",
       .target = &random,
       .help = "share of the chosen tokens that are replaced by a random token; the rest stay unchanged",
       .least = 0,
       .greatest = 1},
  };
}

std::optional<std::string> MaskingSettings::contradiction() {
  if (mask + random > 1 + 1e-12) return fmt::format("random: {} and mask: {} add up to more than 1", random, mask);
  return std::nullopt;
}

}  // namespace heed
