#include "experiments/train/inherited_model.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "experiments/data/files.hpp"
#include "experiments/train/weights.hpp"

namespace heed {

namespace {

/// The key that says what a section's other keys are.
std::string kind_of(Yaml const& section) {
  for (char const* const key : {"kind", "linear"})
    if (Yaml const* const value = section.inside(key)) return value->text;
  return "";
}

void set_location(Yaml& value, Location const& location) {
  value.location = location;
  for (auto& item : value.items) set_location(item, location);
  for (auto& entry : value.entries) entry.location = location, set_location(entry.value, location);
}

/// Adds to a section what it lacks of the weights' one, unless it has its default there.
void complete(Yaml& section, Yaml const& given, Yaml const& usual) {
  if (section.kind != Yaml::NodeKind::map || given.kind != Yaml::NodeKind::map || !section.text.empty()) return;
  if (auto const kind = kind_of(section); !kind.empty() && kind != kind_of(given)) return;
  for (auto const& entry : given.entries) {
    Yaml const* const before = usual.inside(entry.key);
    auto const own = std::ranges::find(section.entries, entry.key, &Yaml::Entry::key);
    if (own != section.entries.end()) {
      if (before != nullptr) complete(own->value, entry.value, *before);
    } else if (before == nullptr || emit_line(*before) != emit_line(entry.value)) {
      section.entries.push_back(entry);
    }
  }
}

}  // namespace

bool inherit_model(Document& document, Folders const& folders) {
  Yaml const* const from = document.root.find("init.from");
  if (from == nullptr || from->text.empty()) return false;
  std::filesystem::path path;
  try {
    path = locate(from->text, {.config_folder = folders.config_folder,
                               .data_folder = folders.data,
                               .runs = folders.runs.empty() ? folders.output : folders.runs});
  } catch (FileError const& error) {
    Yaml const* const model = document.root.find("model");
    bool const said = model != nullptr && (model->inside("kind") != nullptr || !model->text.empty());
    if (!said) throw ConfigError(from->location, fmt::format("init.from: without the weights 'model.kind' is missing: {}", error.what()));
    return false;
  }
  Yaml given = model_of_weights(path);
  if (given.kind == Yaml::NodeKind::null) return false;
  set_location(given, {std::make_shared<std::string const>(fmt::format("the model of {}", path.string()))});

  Yaml const* const found = document.root.find("model");
  Yaml model = found != nullptr ? *found : Yaml();
  if (model.kind == Yaml::NodeKind::scalar && model.text == kind_of(given)) model.text.clear(), model.kind = Yaml::NodeKind::null;
  if (model.kind == Yaml::NodeKind::null) model.kind = Yaml::NodeKind::map;
  if (model.kind != Yaml::NodeKind::map) return false;
  if (model.entry("kind") == nullptr) model.entries.insert(model.entries.begin(), *given.entry("kind"));
  ModelSection usual;
  Document of_kind;
  of_kind.root.kind = Yaml::NodeKind::map;
  assign(of_kind, "model.kind", *model.inside("kind"));
  fill(of_kind, usual);
  complete(model, given, *tree(usual).find("model"));
  assign(document, "model", std::move(model));
  return true;
}

}  // namespace heed
