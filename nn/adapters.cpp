#include "nn/adapters.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"

namespace heed {

namespace {

/// "query" of "blocks.0.attention.query.weight"; "": no weight of a layer's module.
std::string module_of(std::string const& name, Tensor const& parameter) {
  constexpr std::string_view ending = ".weight";
  if (!name.ends_with(ending) || parameter.rank() != 2 || name.find("embedding.") != name.npos) return "";
  auto const path = name.substr(0, name.size() - ending.size());
  return path.substr(path.rfind('.') + 1);
}

bool is_new(std::string_view name) { return name.starts_with("heads.") || name.starts_with("segment_embedding."); }

}  // namespace

std::vector<Field> AdapterSettings::fields() {
  return {field(&rank, "rank", "rank of the adapters; none: no adapters, all weights are trained").in(1, 1 << 16),
          field(&scale, "scale", "the product B A is multiplied by scale / rank").above(0),
          field(&on, "on", "names of the weights that get one: query, key, value, output, up, down, …")};
}

std::optional<std::string> AdapterSettings::contradiction() {
  if (on.empty()) return "on: names no weight";
  return std::nullopt;
}

bool AdapterSettings::from_word(std::string_view word) { return rank.reset(), word == "none"; }

Adapters::Adapters(Parameters& model, AdapterSettings const& settings, std::uint64_t seed)
    : factor_(settings.scale / static_cast<double>(settings.rank.value())), trained_(seed, model.dtype()) {
  std::set<std::string> found, others;
  NamedTensors kept;
  for (auto [name, parameter] : model.all()) {
    auto const module = module_of(name, parameter);
    if (!module.empty() && !is_new(name)) (std::ranges::find(settings.on, module) != settings.on.end() ? found : others).insert(module);
    if (is_new(name)) {
      trained_.adopt(name, parameter, model.decays(name) ? WeightDecay::on : WeightDecay::off);
    } else if (found.contains(module)) {
      Index const rank = *settings.rank, out = parameter.size(0), in = parameter.size(1);
      auto const path = name.substr(0, name.rfind('.'));
      Tensor const down = trained_.add(path + ".down", {rank, in}, Initial::preserving(in), WeightDecay::on);
      adapters_.push_back(
          {name, parameter, parameter.clone(), down, trained_.add(path + ".up", {out, rank}, Initial::constant(0), WeightDecay::on)});
    } else {
      parameter.set_frozen(true);
    }
  }
  for (auto const& name : settings.on)
    if (!found.contains(name))
      throw Error(fmt::format("train.adapters.on: no weight is called {}; there are {}, {}", name, fmt::join(found, ", "),
                              fmt::join(others, ", ")));
}

void Adapters::take_gradients() {
  NoGrad const no_grad;
  for (Adapter& adapter : adapters_) {
    Tensor const whole = adapter.merged.grad();
    adapter.merged.clear_grad();
    if (!whole.defined()) continue;
    adapter.down.set_grad(factor_ * matmul(adapter.up, whole, true));
    adapter.up.set_grad(factor_ * matmul(whole, adapter.down, false, true));
  }
}

void Adapters::merge() {
  NoGrad const no_grad;
  for (Adapter& adapter : adapters_) copy_elements(adapter.base + factor_ * matmul(adapter.up, adapter.down), adapter.merged);
}

NamedTensors Adapters::tensors() const {
  NamedTensors all;
  for (Adapter const& adapter : adapters_)
    for (auto const& [part, tensor] : {std::pair("base", adapter.base), std::pair("down", adapter.down), std::pair("up", adapter.up)})
      all.emplace_back(fmt::format("adapters.{}.{}", part, adapter.name), tensor);
  return all;
}

NamedTensors Adapters::state() const {
  return mapped(tensors(), [](auto const& each) { return std::pair(each.first, each.second.clone()); });
}

void Adapters::load_state(NamedTensors const& state) {
  std::map<std::string, Tensor> const given(state.begin(), state.end());
  for (auto& [name, into] : tensors()) {
    auto const found = given.find(name);
    if (found == given.end() || found->second.shape() != into.shape() || found->second.dtype() != into.dtype())
      throw Error(fmt::format("'{}' {} is missing", name, to_string(into.shape())));
    copy_elements(found->second, into);
  }
}

}  // namespace heed
