#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/parameters.hpp"
#include "nn/settings.hpp"

namespace heed {

/// An item of `optimizer.groups`: parameters by name, and their settings.
struct GroupSettings : Settings {
  std::string match;
  std::optional<double> lr, lr_factor, weight_decay;
  bool frozen = false;
  std::optional<Index> unfreeze;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// Whether a name matches a pattern, in which each * stands for any text, including dots and the empty text.
bool matches(std::string_view pattern, std::string_view name);

/// Whether a parameter belongs to a layer of the model: a number is in its name, and it is neither an embedding or a table of distances nor
/// a task head's.
bool in_a_layer(std::string_view name);

/// An optimizer's settings for one parameter.
struct Treatment {
  double rate = 1;                        ///< factor on the learning rate
  bool own_rate = false;                  ///< a group gives its rate (`lr`)
  std::optional<double> weight_decay{};   ///< instead of the optimizer's
  double decay_factor = 1;                ///< factor on the weight decay
  std::optional<Index> first_update = 0;  ///< number of the first update (from 0) that changes it; nothing: frozen
};

/// Per parameter, in their order, the treatment of the last group that matches its name (as in .gitignore: general before specific). `lr`:
/// the optimizer's, relative to which a group's own rate is expressed. `layer_decay`: layer-wise learning-rate decay (Howard & Ruder 2018;
/// Clark et al. 2020; Bao et al. 2022): the factor is layer_decay^(L − i) for layer i of L, layer_decay^(L + 1) for embeddings and tables
/// of distances, 1 for what follows the layers; a group's lr_factor multiplies it, a group's lr replaces it. A parameter's layer is the
/// first number in its name. What a parametrization gives (Parameters::rates) multiplies each rate, and divides each decay, so that their
/// product stays.
///
/// Throws Error, which begins with the key (`optimizer.groups.0.match: …`), for a group that matches nothing, whose parameters are all
/// taken by later groups, or whose weight decay applies to none of them; for layer_decay of a model without layers; and if nothing is
/// trained from the first update on.
std::vector<Treatment> treatments(Parameters const& parameters, std::vector<GroupSettings> const& groups, std::optional<double> layer_decay,
                                  double lr);

}  // namespace heed
