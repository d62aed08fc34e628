#include "nn/models/bert.hpp"

#include <fmt/format.h>

namespace heed {

namespace {

DeclaredModel const declared{{"bert", "bidirectional Transformer encoder, predicts masked tokens (Devlin et al. 2019)",
                              [](Settings const& settings) {
                                auto const& bert = dynamic_cast<BertSettings const&>(settings);
                                return head_settings(bert.head).reads(
                                    {.targets = "masked_tokens", .examples = "segmented", .segments = true, .how = &bert.masking});
                              },
                              [] { return std::make_shared<BertSettings>(); },
                              [](Parameters& parameters, Settings const& settings, Signature const& data) {
                                return std::make_unique<Bert>(parameters, dynamic_cast<BertSettings const&>(settings), data);
                              }}};

}  // namespace

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

std::vector<Field> BertSettings::fields() {
  auto all = TextStackSettings::fields();
  all.push_back({.name = "masking", .target = &masking, .help = "which tokens are to be predicted, and what stands in their place"});
  return all;
}

}  // namespace heed
