#include "experiments/train/weights.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/exchange/huggingface.hpp"
#include "nn/batch.hpp"
#include "nn/files/checkpoint.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/number.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

std::string name_of_non_finite(double value) { return std::isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity"; }

namespace {

/// Parameters that belong to a task, which another task's checkpoint need not have.
bool of_a_task(std::string_view name) { return name.starts_with("heads.") || name.starts_with("segment_embedding."); }

bool by_token(std::string_view name) { return name == "token_embedding.weight" || name == "head.weight" || name == "head.bias"; }

/// The block that a parameter belongs to; nothing: none.
std::optional<Index> block_of(std::string_view name) {
  constexpr std::string_view blocks = "blocks.";
  if (!name.starts_with(blocks)) return std::nullopt;
  name.remove_prefix(blocks.size());
  return parsed_number<Index>(name.substr(0, name.find('.')));
}

/// A source of weights: tensors by heed's names, and the tokens that they are for, as far as known.
struct StartSource {
  std::string path;  ///< of the file
  std::map<std::string, Tensor> tensors;
  std::string tokenizer;           ///< as Dataset::tokenizer(); empty: not known
  std::optional<PartSpec> inputs;  ///< the tokens that it reads
  bool best = false;               ///< they are the weights of a run's best evaluation (train.keep: best)
};

/// The file of weights that a path names: a run's folder has its best ones, or its last.
fs::path weights_in(fs::path const& path) {
  if (!is_folder(path)) return path;
  return has_best(path) ? best_file(path) : path / "checkpoint.safetensors";
}

/// From a run's folder, a transformers folder of a GPT-2, or a file of tensors.
StartSource source_of(fs::path const& path) {
  if (is_huggingface_folder(path)) {
    PortableModel const read = read_gpt2(path);
    return {.path = read.origin,
            .tensors = {read.tensors.begin(), read.tensors.end()},
            .tokenizer = read.tokenizer,
            .inputs = signature_of(read)["inputs"]};
  }
  fs::path const file = weights_in(path);
  SafetensorsFile const opened(file);
  opened.check_seal();
  StartSource source{.path = file.string(), .tensors = {}, .tokenizer = {}, .inputs = {}, .best = file == best_file(path)};
  for (std::string const& name : opened.names()) source.tensors.emplace(name, opened.tensor(name));
  auto const& metadata = opened.metadata();
  if (auto const tokenizer = metadata.find("tokenizer"); tokenizer != metadata.end()) source.tokenizer = tokenizer->second;
  if (auto const found = metadata.find("data"); found != metadata.end()) {
    Signature const data = Signature::parse(found->second, source.path + ": its metadata of the data");
    if (data.has("inputs")) source.inputs = data["inputs"];
  }
  return source;
}

/// A checkpoint, on its way into a model's parameters.
class WeightTransfer {
 public:
  WeightTransfer(StartSource const& source, Parameters& parameters, InitSettings const& init, Dataset const& data)
      : path_(source.path), parameters_(parameters), init_(init), given_(source.tensors), before_(source.inputs) {
    for (auto const& [name, tensor] : given_)
      if (auto const block = block_of(name)) blocks_ = std::max(blocks_, *block + 1);
    if (init.layers && *init.layers > blocks_)
      throw Error(fmt::format("init.layers: {} are more than the {} blocks of {}", *init.layers, blocks_, path_));
    if (!source.tokenizer.empty() && !data.tokenizer().empty() && source.tokenizer != data.tokenizer())
      throw FileError(
          fmt::format("{}: has other tokens than the data: its vocabulary has {} tokens, theirs {} (data.tokenizer: {{kind: run, from: …}} "
                      "uses its tokenizer)",
                      path_, restore_tokenizer(source.tokenizer)->vocabulary(), data.facts().tokenizer->vocabulary()));
    Signature const now = data.signature();
    if (now.has("inputs")) inputs_ = now["inputs"];
    if (before_ || !inputs_) return;
    // A model that does not name its tokens has those of text alone, if the numbers agree.
    auto const table = given_.find("token_embedding.weight");
    Index const words = inputs_->classes - std::ssize(inputs_->added);
    if (table != given_.end() && table->second.rank() == 2 && table->second.size(0) == words)
      before_ = PartSpec{.name = "inputs", .classes = words};
  }

  std::string run() {
    NamedTensors values;
    for (auto const& [name, parameter] : parameters_.all()) values.emplace_back(name, value_of(name, parameter));
    for (auto const& [name, tensor] : given_) leave(name, tensor);
    if (!errors_.empty()) throw MisfitWeights(fmt::format("{}: {}", path_, joined_messages(errors_)));
    assign_from(path_, values, parameters_);
    std::string remark;
    if (!drawn_.empty()) remark = fmt::format("initialised at random: {}", joined_messages(drawn_));
    if (!left_.empty()) remark += fmt::format("{}not taken: {}", remark.empty() ? "" : "; ", joined_messages(left_));
    return remark;
  }

 private:
  /// The initial value of a parameter.
  Tensor value_of(std::string const& name, Tensor const& parameter) {
    auto const found = given_.find(name);
    auto const block = block_of(name);
    bool const deep = init_.layers && ((block && *block >= *init_.layers) || (name.starts_with("norm.") && *init_.layers < blocks_));
    if (deep || (found == given_.end() && of_a_task(name))) {
      drawn_.push_back(name);
      return parameter;
    }
    if (found == given_.end()) {
      errors_.push_back(fmt::format("'{}' {} is missing", name, to_string(parameter.shape())));
      return parameter;
    }
    if (by_token(name) && inputs_ && before_ && inputs_->added != before_->added) return tokens_of(name, parameter, found->second);
    Tensor const& value = found->second;
    if (value.shape() == parameter.shape()) return value;
    bool const more = name == "position_embedding.weight" && value.rank() == 2 && value.size(1) == parameter.size(1);
    if (more && value.size(0) > parameter.size(0)) return value.rows(0, parameter.size(0));
    errors_.push_back(fmt::format("'{}' is {}, the model's is {}", name, to_string(value.shape()), to_string(parameter.shape())));
    return parameter;
  }

  /// Matches rows by token: those of text, and the added ones that both have.
  Tensor tokens_of(std::string const& name, Tensor const& parameter, Tensor const& value) {
    Index const words = inputs_->classes - std::ssize(inputs_->added), before = before_->classes - std::ssize(before_->added);
    Shape expected = parameter.shape();
    expected.set(0, before_->classes);
    if (words != before || value.shape() != expected) {
      errors_.push_back(fmt::format("'{}' is {} for a vocabulary of {} tokens, the model's is {} for one of {}", name,
                                    to_string(value.shape()), before, to_string(parameter.shape()), words));
      return parameter;
    }
    Tensor result = parameter.clone();
    Tensor const source = value.to(parameter.dtype());
    auto const take = [&](Index from, Index to, Index count) {
      std::ranges::copy(bytes_in(source.rows(from, count)), writable_bytes_in(result.rows(to, count)).begin());
    };
    take(0, 0, words);
    auto const elsewhere = [&](std::string const& mark) { return std::ranges::count(inputs_->added, mark) == 0; };
    if (auto const count = std::ranges::count_if(before_->added, elsewhere); count > 0)
      left_.push_back(fmt::format("{} rows of {} of tokens that the data do not have", count, name));
    for (std::string const& mark : inputs_->added) {
      if (std::ranges::count(before_->added, mark) == 0)
        drawn_.push_back(fmt::format("the row of {} in {}", mark, name));
      else
        take(before_->token(mark), inputs_->token(mark), 1);
    }
    return result;
  }

  /// Tensors that the model has no place for.
  void leave(std::string const& name, Tensor const& tensor) {
    if (parameters_.find(name) != nullptr) return;
    bool const head_of_tokens = name.starts_with("head.");
    auto const block = block_of(name);
    bool const task = std::ranges::any_of(parameters_.all(), [](auto const& each) { return each.first.starts_with("heads."); });
    if (of_a_task(name) || (head_of_tokens && task) || (init_.layers && block && *block >= *init_.layers))
      left_.push_back(name);
    else
      errors_.push_back(fmt::format("'{}' {} is not the model's", name, to_string(tensor.shape())));
  }

  std::string const& path_;
  Parameters& parameters_;
  InitSettings const& init_;
  std::map<std::string, Tensor> const& given_;
  Index blocks_ = 0;                         ///< of the checkpoint
  std::optional<PartSpec> inputs_, before_;  ///< the tokens that the model reads, and that the checkpoint's did
  std::vector<std::string> errors_, drawn_, left_;
};

/// The kind of a section; "": it has none.
std::string kind_of(Yaml const& section) { return section.inside("kind") != nullptr ? section.inside("kind")->text : ""; }

/// The dotted keys in which two sections differ; where their kinds differ, their own.
void add_differences(Yaml const& before, Yaml const& now, std::string const& key, std::vector<std::string>& differing) {
  bool const sections = before.kind == Yaml::NodeKind::map && now.kind == Yaml::NodeKind::map && kind_of(before) == kind_of(now);
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

/// The value of the key that says what a section's other keys are.
std::string sort_of(Yaml const& section) {
  Yaml const* const linear = section.inside("linear");
  return section.inside("kind") == nullptr && linear != nullptr ? linear->text : kind_of(section);
}

void set_location(Yaml& value, Location const& location) {
  value.location = location;
  for (auto& item : value.items) set_location(item, location);
  for (auto& entry : value.entries) entry.location = location, set_location(entry.value, location);
}

/// Adds to a section what it lacks of the weights' one, unless it has its default there.
void complete(Yaml& section, Yaml const& given, Yaml const& usual) {
  if (section.kind != Yaml::NodeKind::map || given.kind != Yaml::NodeKind::map || !section.text.empty()) return;
  if (auto const kind = sort_of(section); !kind.empty() && kind != sort_of(given)) return;
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

std::optional<std::string> find_non_finite(NamedTensors const& tensors) {
  for (auto const& [name, tensor] : tensors) {
    if (tensor.dtype() == DType::int64) continue;
    Index const finite = kernels::with_real(tensor.dtype(), [&numbers = tensor](auto zero) {
      auto const values = numbers.data<decltype(zero)>();
      return std::ranges::find_if(values, [](auto value) { return !std::isfinite(value); }) - values.begin();
    });
    if (finite < tensor.elements())
      return fmt::format("tensor '{}' holds {} at element {}", name, name_of_non_finite(tensor.at(finite)), finite);
  }
  return std::nullopt;
}

void assign_from(std::string const& path, NamedTensors const& values, Parameters& parameters) {
  for (auto const& [name, value] : values)
    if (value.dtype() == DType::int64) throw FileError(fmt::format("{}: tensor '{}' is int64, and no weights", path, name));
  if (auto const damage = find_non_finite(values)) throw FileError(fmt::format("{}: {}: the weights are damaged", path, *damage));
  try {
    parameters.assign(values);
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: {}", path, error.what()));
  }
}

Start start_from(Parameters& parameters, InitSettings const& init, Dataset const& data, fs::path const& path) {
  StartSource const source = source_of(path);
  auto remark = WeightTransfer(source, parameters, init, data).run();
  if (source.best) remark = fmt::format("the run's best weights{}{}", remark.empty() ? "" : "; ", remark);
  return {{source.path, sha256_of_file(source.path)}, std::move(remark)};
}

Yaml model_of_weights(fs::path const& path) {
  ModelSection section;
  if (is_huggingface_folder(path)) {
    section.model = gpt2_model_in(path);
  } else {
    fs::path const file = weights_in(path);
    auto const metadata = SafetensorsFile(file).metadata();
    auto const found = metadata.find("configuration");
    if (found == metadata.end()) return {};
    Document document;
    Yaml const configuration = parse_yaml(found->second, file.string() + ": its configuration");
    if (auto const* const model = configuration.inside("model")) assign(document, "model", *model);
    fill(document, section);
  }
  return *tree(section).find("model");
}

std::vector<ChangedKey> changed_keys(Yaml const& before, Experiment settings, Model const& model, Parameters const& weights,
                                     Dataset const& data) {
  ModelSection section;
  section.model = settings.model;
  Document document;
  document.root = tree(section);
  std::vector<std::string> differing;
  add_differences(before, *document.root.find("model"), "model", differing);
  std::erase_if(differing, [&](auto const& key) { return key == "model.head" || (key == "model.layers" && settings.init.layers); });
  if (differing.empty()) return {};
  Batch const batch = data.training(0, settings.train.batch, model.context());
  auto const own = outputs_of(model, batch);
  auto const earlier = [&](std::string const& key) { return key == "model" ? &before : before.find(key.substr(6)); };
  auto const changes = [&](std::string const& key) {
    Document other = document;
    assign(other, key, *earlier(key));
    try {
      ModelSection of_key;  // not `section`, which shares its settings with the run
      fill(other, of_key);
      auto same = Parameters::given(weights.all(), weights.dtype());
      return !std::ranges::equal(outputs_of(*make_model(of_key.model, same, data.signature()), batch), own, same_bits);
    } catch (OutOfMemory const&) {
      throw;
    } catch (Error const&) {
      return key != "model.context";
    }
  };
  auto const said = [](Yaml const& value) { return value.inside("kind") != nullptr ? kind_of(value) : emit_line(value); };
  std::vector<ChangedKey> changed;
  for (auto const& key : differing)
    changed.push_back({key, fmt::format("{} is {}, was {}", key, said(*document.root.find(key)), said(*earlier(key))), changes(key)});
  return changed;
}

DataContext data_context(Folders const& folders) {
  return {
      .config_folder = folders.config_folder, .data_folder = folders.data, .runs = folders.runs.empty() ? folders.output : folders.runs};
}

bool inherit_model(Document& document, Folders const& folders) {
  Yaml const* const from = document.root.find("init.from");
  if (from == nullptr || from->text.empty()) return false;
  std::filesystem::path path;
  try {
    path = locate(from->text, data_context(folders));
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
  assign(of_kind, "model.kind", *model.inside("kind"));
  fill(of_kind, usual);
  complete(model, given, *tree(usual).find("model"));
  assign(document, "model", std::move(model));
  return true;
}

}  // namespace heed
