#include "experiments/run/exchange/gpt2_tensors.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

Shape Gpt2Tensor::whole() const {
  auto const count = static_cast<std::int64_t>(parts.size());
  return shape.rank() == 1 ? Shape{count * shape[0]} : Shape{count * shape[0], shape[1]};
}

Shape Gpt2Tensor::stored() const {
  Shape const here = whole();
  return in_first ? Shape{here[1], here[0]} : here;
}

std::vector<Gpt2Tensor> gpt2_tensors(Gpt2Config const& config) {
  GptSettings const& s = config.settings;
  std::vector<Gpt2Tensor> all;
  auto const norm = [&](std::string const& there, std::string const& here) {
    for (char const* const end : {".weight", ".bias"}) all.push_back({there + end, {here + end}, {s.width}});
  };
  auto const linear = [&](std::string const& there, std::vector<std::string> const& here, std::int64_t in, std::int64_t out) {
    Gpt2Tensor weight{there + ".weight", {}, {out, in}, true}, bias{there + ".bias", {}, {out}};
    for (std::string const& part : here) {
      weight.parts.push_back(part + ".weight");
      bias.parts.push_back(part + ".bias");
    }
    all.push_back(std::move(weight));
    all.push_back(std::move(bias));
  };
  all.push_back({"transformer.wte.weight", {"token_embedding.weight"}, {config.vocabulary, s.width}});
  all.push_back({"transformer.wpe.weight", {"position_embedding.weight"}, {s.context, s.width}});
  for (std::int64_t i = 0; i < s.layers; ++i) {
    auto const there = fmt::format("transformer.h.{}.", i), here = fmt::format("blocks.{}.", i), attention = here + "attention.";
    norm(there + "ln_1", here + "norm1");
    linear(there + "attn.c_attn", {attention + "query", attention + "key", attention + "value"}, s.width, s.width);
    linear(there + "attn.c_proj", {attention + "output"}, s.width, s.width);
    norm(there + "ln_2", here + "norm2");
    linear(there + "mlp.c_fc", {here + "mlp.up"}, s.width, s.hidden());
    linear(there + "mlp.c_proj", {here + "mlp.down"}, s.hidden(), s.width);
  }
  norm("transformer.ln_f", "norm");
  if (!s.tie) all.push_back({"lm_head.weight", {"head.weight"}, {config.vocabulary, s.width}});
  return all;
}

NamedTensors parts_of(Gpt2Tensor const& tensor, Tensor const& stored) {
  NoGrad const quiet;
  Tensor const whole = tensor.in_first ? transpose(stored) : stored;
  NamedTensors parts;
  std::int64_t const rows = tensor.shape[0];
  for (std::size_t i = 0; i < tensor.parts.size(); ++i)
    parts.emplace_back(tensor.parts[i], whole.rows(static_cast<std::int64_t>(i) * rows, rows));
  return parts;
}

Tensor joined(Gpt2Tensor const& tensor, NamedTensors const& parameters) {
  NoGrad const quiet;
  std::vector<Tensor> parts;
  for (std::string const& name : tensor.parts) {
    auto const found = std::ranges::find(parameters, name, &NamedTensors::value_type::first);
    if (found != parameters.end()) {
      parts.push_back(found->second.detach());
    } else {
      if (!name.ends_with(".bias")) throw Error(fmt::format("there is no parameter {}", name));
      parts.push_back(Tensor::zeros(tensor.shape, parameters.front().second.dtype()));
    }
  }
  return parts.size() == 1 ? parts.front() : concatenate(parts, 0);
}

Tensor stored(Gpt2Tensor const& tensor, NamedTensors const& parameters) {
  NoGrad const quiet;
  Tensor const whole = joined(tensor, parameters);
  return tensor.in_first ? transpose(whole) : whole;
}

Gpt2Config gpt2_config(PortableModel const& model) {
  auto const* const settings = dynamic_cast<GptSettings const*>(model.model.settings.get());
  if (settings == nullptr) throw Error(fmt::format("{}: its model is of kind {}, and no gpt", model.origin, model.model.kind));
  return {*settings, model.vocabulary};
}

std::optional<std::string> not_gpt2(PortableModel const& model) {
  if (auto unavailable = gpt2_unavailable(model.model)) return unavailable;
  std::set<std::string> known;
  for (Gpt2Tensor const& tensor : gpt2_tensors(gpt2_config(model))) known.insert(tensor.parts.begin(), tensor.parts.end());
  std::vector<std::string> complaints;
  for (auto const& [name, tensor] : model.tensors)
    if (!known.contains(name)) complaints.push_back(fmt::format("its parameter {} has no name in GPT-2", name));
  if (complaints.empty()) return std::nullopt;
  return in_short(complaints);
}

}  // namespace heed
