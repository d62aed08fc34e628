#include "nn/masking.hpp"

#include <fmt/format.h>

namespace heed {

std::vector<Field> MaskingSettings::fields() {
  return {
      {.name = "share",
       .target = &share,
       .help = "of the tokens that are chosen, to be predicted",
       .least = 0,
       .greatest = 1,
       .open = true},
      {.name = "mask", .target = &mask, .help = "share of the chosen tokens that [MASK] replaces", .least = 0, .greatest = 1},
      {.name = "random",
       .target = &random,
       .help = "share of the chosen tokens that a random one replaces; the rest stay as they are",
       .least = 0,
       .greatest = 1},
  };
}

std::optional<std::string> MaskingSettings::contradiction() {
  if (mask + random > 1 + 1e-12) return fmt::format("random: {} and mask: {} are more than all of the chosen tokens", random, mask);
  return std::nullopt;
}

}  // namespace heed
