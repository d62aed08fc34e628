#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/parameters.hpp"
#include "nn/settings.hpp"

namespace heed {

/// An item of `optimizer.groups`: parameters by their names, and what is different for them.
struct GroupSettings : Settings {
  std::string match;
  std::optional<double> lr, lr_factor, weight_decay;
  bool frozen = false;
  std::optional<std::int64_t> unfreeze;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// Whether a name fits a pattern, in which each * stands for any text, dots and nothing included.
bool matches(std::string_view pattern, std::string_view name);

/// The last group that matches a parameter's name, which is the one that holds; null: none does.
GroupSettings const* group_of(std::vector<GroupSettings> const& groups, std::string_view name);

/// What an optimizer does with one parameter.
struct Treatment {
  double rate = 1;                               ///< factor on the learning rate
  std::optional<double> weight_decay{};          ///< instead of the optimizer's
  std::optional<std::int64_t> first_update = 0;  ///< number of the first update (from 0) that changes it; nothing: none does
};

/// By parameter, in their order: that of the last group which matches its name (as in .gitignore: the general before the special). `lr`:
/// the optimizer's, of which a group's own rate is a part. `layer_decay`: layer-wise decay of the rate (Howard & Ruder 2018; Clark et al.
/// 2020; Bao et al. 2022): of layer i of L the factor layer_decay^(L − i), of embeddings and tables of distances layer_decay^(L + 1), of
/// what comes after the layers 1; a group's lr_factor multiplies it, a group's lr takes its place. A parameter's layer is the first number
/// in its name.
///
/// Throws Error, which begins with the key (`optimizer.groups.0.match: …`), for a group that matches nothing, of whose parameters later
/// groups take all, or that decays what no weight decay falls on; for layer_decay of a model without layers; and if nothing is trained from
/// the first update on.
std::vector<Treatment> treatments(Parameters const& parameters, std::vector<GroupSettings> const& groups, std::optional<double> layer_decay,
                                  double lr);

}  // namespace heed
