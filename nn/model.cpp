#include "nn/model.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/operations.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

std::vector<ModelKind>& registry() {
  static auto* const kinds = new std::vector<ModelKind>;
  return *kinds;
}

}  // namespace

std::optional<LinearHead> Model::linear_head(Batch const&, Pass const&) const { return std::nullopt; }

std::unique_ptr<Decoding> Model::decode(Batch const&, Pass const&) const { return nullptr; }

Tensor Model::loss(Batch const& batch, Pass const& pass, double label_smoothing, std::optional<double> count) const {
  if (auto const head = linear_head(batch, pass))
    return linear_cross_entropy(head->x, head->weight, head->bias, batch.targets, label_smoothing, -1, count);
  return cross_entropy(logits(batch, pass), batch.targets, label_smoothing, -1, count);
}

void Model::each_logits(Batch const& batch, Pass const& pass, std::function<void(std::int64_t, Tensor const&)> const& see) const {
  std::int64_t const places = batch.inputs.elements();
  auto const head = linear_head(batch, pass);
  if (!head) return see(0, reshape(logits(batch, pass), {places, -1}));
  Tensor const x = reshape(head->x, {places, -1});
  std::int64_t const at_once = logits_at_once(places, head->weight.size(0), x.dtype());
  for (std::int64_t first = 0; first < places; first += at_once)
    see(first, linear(slice(x, 0, first, std::min(places, first + at_once)), head->weight, head->bias));
}

DeclaredModel::DeclaredModel(ModelKind kind) {
  registry().push_back(std::move(kind));
  std::ranges::sort(registry(), {}, &ModelKind::name);
}

std::vector<ModelKind> const& model_kinds() { return registry(); }

ModelKind const& model_kind(std::string const& name) {
  auto const found = std::ranges::find(registry(), name, &ModelKind::name);
  if (found == registry().end()) throw Error(fmt::format("model: there is no kind '{}'", name));
  return *found;
}

Choice model_choice() {
  Choice choice;
  for (ModelKind const& kind : registry()) choice.options.push_back({kind.name, kind.help, kind.settings});
  return choice;
}

std::unique_ptr<Model> make_model(Choice const& choice, Parameters& parameters, std::int64_t vocabulary) {
  return model_kind(choice.kind).make(parameters, *choice.settings, vocabulary);
}

}  // namespace heed
