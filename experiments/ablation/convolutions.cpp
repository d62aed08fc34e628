#include "experiments/ablation/convolutions.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nn/models/blocks.hpp"

namespace heed {

std::optional<std::string> convolutions_in_words(Ablation const& ablation) {
  std::vector<std::string> with, without;
  bool matters = false;
  for (auto const& arm : ablation.arms) {
    auto const trial = trial_of(ablation, arm.name, arm.changes, ablation.seeds.front());
    auto const* const stack = dynamic_cast<StackSettings const*>(trial.settings.model.settings.get());
    if (stack == nullptr) return std::nullopt;
    Index convolved = 0;
    for (Index i = 0; i < stack->layers; ++i) {
      auto const attention = stack->of_layer(i).attention;
      if (attention.convolution) ++convolved;
      matters = matters || attention.convolution || attention.is_linear();
    }
    bool const some = convolved > 0 && convolved < stack->layers;
    (convolved > 0 ? with : without).push_back(arm.name + (some ? fmt::format(" (in {} of {} layers)", convolved, stack->layers) : ""));
  }
  if (!matters) return std::nullopt;
  bool const all = without.empty() && std::ranges::equal(with, ablation.arms, {}, {}, &Arm::name);
  if (all) return "every arm has a short convolution on queries, keys and values";
  if (with.empty()) return "no arm has a short convolution";
  return fmt::format("a short convolution on queries, keys and values: with it {}; without it {}", fmt::join(with, ", "),
                     without.empty() ? "none" : fmt::format("{}", fmt::join(without, ", ")));
}

}  // namespace heed
