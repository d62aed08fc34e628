#include "nn/model.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {

namespace {

std::vector<ModelKind>& registry() {
  static auto* const kinds = new std::vector<ModelKind>;
  return *kinds;
}

}  // namespace

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
