#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "nn/files/number.hpp"
#include "nn/optimizer.hpp"

namespace heed {

std::vector<Field> GroupSettings::fields() {
  return {
      field(&match, "match",
            "pattern of parameter names, * matches any text: blocks.*.mlp.*; if several groups match, the last one applies")
          .mandatory(),
      field(&lr, "lr", "peak learning rate of the group; none: the optimizer's").above(0),
      field(&lr_factor, "lr_factor", "factor on the optimizer's learning rate, beside layer_decay").above(0),
      field(&weight_decay, "weight_decay", "weight decay of the group's weights and embeddings; none: the optimizer's").at_least(0),
      field(&frozen, "frozen", "true: never updated; no gradient is computed, and grad_norm excludes the group"),
      field(&unfreeze, "unfreeze", "step from which a frozen group is trained: gradual unfreezing (Howard & Ruder 2018)").in(1, 1e12),
  };
}

std::optional<std::string> GroupSettings::contradiction() {
  if (match.empty()) return "match: wants a pattern of names, such as blocks.0.*";
  if (unfreeze && !frozen) return "unfreeze: needs frozen: true";
  if (lr && lr_factor) return "lr_factor: give either lr or lr_factor";
  if (frozen && !unfreeze && (lr || lr_factor || weight_decay))
    return fmt::format("{}: has no effect with frozen: true, unless unfreeze is given", lr          ? "lr"
                                                                                        : lr_factor ? "lr_factor"
                                                                                                    : "weight_decay");
  return std::nullopt;
}

bool matches(std::string_view pattern, std::string_view name) {
  auto const star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  pattern.remove_prefix(star + 1);
  for (auto rest = star; rest <= name.size(); ++rest)  // where what the star takes may end
    if (matches(pattern, name.substr(rest))) return true;
  return false;
}

namespace {

/// A layer of a stack: "encoder.blocks" and 3 of "encoder.blocks.3.norm1.bias".
struct StackLayer {
  std::string stack;
  Index number;
};

std::optional<StackLayer> layer_of(std::string_view name) {
  if (name.starts_with("heads.")) return std::nullopt;  // its own layers come after the model's
  for (std::size_t begin = 0; begin < name.size();) {
    std::size_t const end = std::min(name.find('.', begin), name.size());
    auto const number = parsed_number<Index>(name.substr(begin, end - begin));
    if (number && begin > 0) return StackLayer{std::string(name.substr(0, begin - 1)), *number};
    begin = end + 1;
  }
  return std::nullopt;
}

/// Whether a parameter is an embedding or a table of relative positions, which comes before the layers.
bool is_table(std::string_view name) { return name.find("embedding.") != name.npos || name.find("relative.") != name.npos; }

std::vector<double> layer_rates(Parameters const& parameters, double decay) {
  std::map<std::string, Index> layers;  // by stack
  for (auto const& [name, parameter] : parameters.all())
    if (auto const layer = layer_of(name)) layers[layer->stack] = std::max(layers[layer->stack], layer->number + 1);
  if (layers.empty()) throw Error("optimizer.layer_decay: the names of the model's parameters show no layers");
  Index const deepest = std::ranges::max_element(layers, {}, &decltype(layers)::value_type::second)->second;
  std::vector<double> rates;
  for (auto const& [name, parameter] : parameters.all()) {
    auto const layer = layer_of(name);
    Index const above = layer ? layers.at(layer->stack) - layer->number : is_table(name) ? deepest + 1 : 0;
    rates.push_back(std::pow(decay, static_cast<double>(above)));
  }
  return rates;
}

std::string key_of(std::size_t group, char const* field) { return fmt::format("optimizer.groups.{}.{}", group, field); }

/// Numbers of a group's parameters: matched by its pattern, of these matched by no later group, of these with weight decay.
struct Members {
  std::size_t matched = 0, own = 0, decaying = 0;
};

void check(std::vector<GroupSettings> const& groups, std::vector<Members> const& members) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (members[i].matched == 0) throw Error(fmt::format("{}: '{}' matches no parameter", key_of(i, "match"), groups[i].match));
    if (members[i].own == 0)
      throw Error(fmt::format("{}: later groups match all {} parameters of '{}', and the last group that matches applies",
                              key_of(i, "match"), members[i].matched, groups[i].match));
    if (groups[i].weight_decay.value_or(0) > 0 && members[i].decaying == 0)
      throw Error(fmt::format("{}: '{}' matches no parameter with weight decay (biases, norms and scalars have none)",
                              key_of(i, "weight_decay"), groups[i].match));
  }
}

}  // namespace

bool in_a_layer(std::string_view name) { return layer_of(name) && !is_table(name); }

std::vector<Treatment> treatments(Parameters const& parameters, std::vector<GroupSettings> const& groups, std::optional<double> layer_decay,
                                  double lr) {
  auto const rates = layer_decay ? layer_rates(parameters, *layer_decay) : std::vector<double>(parameters.all().size(), 1);
  std::vector<Members> members(groups.size());
  std::vector<Treatment> result;
  for (auto const& [name, parameter] : parameters.all()) {
    Treatment treatment{.rate = rates[result.size()]};
    GroupSettings const* group = nullptr;  // the last one that matches
    Members* of_group = nullptr;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (!matches(groups[i].match, name)) continue;
      group = &groups[i], of_group = &members[i];
      ++of_group->matched;
    }
    if (group != nullptr) {
      ++of_group->own;
      if (parameters.decays(name)) ++of_group->decaying;
      treatment.rate = group->lr ? *group->lr / lr : treatment.rate * group->lr_factor.value_or(1);
      treatment.own_rate = group->lr.has_value();
      treatment.weight_decay = group->weight_decay;
      if (group->frozen) treatment.first_update = group->unfreeze;
    }
    if (auto const own = parameters.rates().find(name); own != parameters.rates().end())
      treatment.rate *= own->second, treatment.decay_factor = 1 / own->second;
    result.push_back(treatment);
  }
  check(groups, members);
  if (!result.empty() && std::ranges::none_of(result, [](Treatment const& each) { return each.first_update == 0; }))
    throw Error("optimizer.groups: all parameters are frozen: the first step would train nothing");
  return result;
}

}  // namespace heed
