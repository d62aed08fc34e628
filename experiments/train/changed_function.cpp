#include "experiments/train/changed_function.hpp"

#include <algorithm>

#include "autograd/graph.hpp"
#include "experiments/train/weights.hpp"

namespace heed {

namespace {

/// The dotted keys in which two sections differ; where their kinds differ, their own.
void add_differences(Yaml const& before, Yaml const& now, std::string const& key, std::vector<std::string>& differing) {
  auto const kind = [](Yaml const& section) { return section.inside("kind") != nullptr ? section.inside("kind")->text : ""; };
  bool const sections = before.kind == Yaml::NodeKind::map && now.kind == Yaml::NodeKind::map && kind(before) == kind(now);
  if (!sections && emit_line(before) != emit_line(now)) differing.push_back(key);
  if (!sections) return;
  for (auto const& entry : now.entries)
    if (Yaml const* const other = before.inside(entry.key)) add_differences(*other, entry.value, key + "." + entry.key, differing);
}

/// What the heads of the predictions read; the heads' own weights are the same.
std::vector<Tensor> outputs_of(Model const& model, Batch const& batch) {
  NoGrad const no_grad;
  std::vector<Tensor> outputs;
  for (auto const& prediction : model.run(batch, Pass()).predictions) outputs.push_back(prediction.head.x);
  return outputs;
}

}  // namespace

std::vector<ChangedKey> changed_function(Yaml const& configuration, Experiment settings, Model const& model, Parameters const& weights,
                                         Dataset const& data) {
  Document document;
  document.root.kind = Yaml::NodeKind::map;
  if (auto const* const entry = configuration.entry("model")) document.root.entries.push_back(*entry);
  ModelSection section;
  fill(document, section);  // keys that an earlier revision did not know get their defaults
  Yaml const before = tree(section);
  section.model = settings.model;
  document.root = tree(section);
  std::vector<std::string> differing;
  add_differences(*before.find("model"), *document.root.find("model"), "model", differing);
  std::erase_if(differing, [&](auto const& key) { return key == "model.head" || (key == "model.layers" && settings.init.layers); });
  if (differing.empty()) return {};
  Batch const batch = data.training(0, settings.train.batch, model.context());
  auto const own = outputs_of(model, batch);
  auto const changes = [&](std::string const& key) {
    Document other = document;
    assign(other, key, *before.find(key));
    try {
      fill(other, section);
      auto same = Parameters::given(weights.all(), weights.dtype());
      return !std::ranges::equal(outputs_of(*make_model(section.model, same, data.signature()), batch), own, same_bits);
    } catch (OutOfMemory const&) {
      throw;
    } catch (Error const&) {
      return key != "model.context";
    }
  };
  auto const said = [](Yaml const& value) { return value.inside("kind") != nullptr ? value.inside("kind")->text : emit_line(value); };
  std::vector<ChangedKey> changed;
  for (auto const& key : differing)
    if (changes(key))
      changed.push_back({key, fmt::format("{} is {}, was {}", key, said(*document.root.find(key)), said(*before.find(key)))});
  return changed;
}

}  // namespace heed
