#include "experiments/train/weights.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/exchange/huggingface.hpp"
#include "experiments/train/changed_function.hpp"
#include "nn/files/checkpoint.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/files/sha256.hpp"
#include "nn/signature.hpp"

namespace heed {

namespace fs = std::filesystem;

std::string name_of_non_finite(double value) { return std::isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity"; }

namespace {

template <class T>
std::optional<std::string> find_non_finite(std::string const& name, Tensor const& tensor) {
  auto const values = tensor.data<T>();
  auto const found = std::ranges::find_if(values, [](T value) { return !std::isfinite(value); });
  if (found == values.end()) return std::nullopt;
  return fmt::format("tensor '{}' holds {} at element {}", name, name_of_non_finite(static_cast<double>(*found)), found - values.begin());
}

/// Parameters that belong to a task, which another task's checkpoint need not have.
bool of_a_task(std::string_view name) { return name.starts_with("heads.") || name.starts_with("segment_embedding."); }

bool by_token(std::string_view name) { return name == "token_embedding.weight" || name == "head.weight" || name == "head.bias"; }

/// The block that a parameter belongs to; nothing: none.
std::optional<Index> block_of(std::string_view name) {
  constexpr std::string_view blocks = "blocks.";
  Index number = 0;
  if (!name.starts_with(blocks)) return std::nullopt;
  auto const [end, wrong] = std::from_chars(name.data() + blocks.size(), name.data() + name.size(), number);
  return wrong == std::errc() ? std::optional(number) : std::nullopt;
}

template <class T>
void copy_rows(Tensor const& source, Index from, Tensor& result, Index to, Index count) {
  auto const row = source.elements() / source.size(0);
  auto const rows = source.data<T>().subspan(static_cast<std::size_t>(from * row), static_cast<std::size_t>(count * row));
  std::ranges::copy(rows, result.mutable_data<T>().begin() + to * row);
}

/// A source of weights: tensors by heed's names, and the tokens that they are for, as far as known.
struct StartSource {
  std::string path;  ///< of the file
  std::map<std::string, Tensor> tensors;
  std::string tokenizer;           ///< as Dataset::tokenizer(); empty: not known
  std::optional<PartSpec> inputs;  ///< the tokens that it reads
  Yaml configuration = {};         ///< as Start has it
  bool best = false;               ///< they are the weights of a run's best evaluation (train.keep: best)
};

/// From a run's folder, a transformers folder of a GPT-2, or a file of tensors.
StartSource source_of(fs::path const& path) {
  std::error_code unreadable;
  if (is_huggingface_folder(path)) {
    PortableModel const read = read_gpt2(path);
    ModelSection section;
    section.model = read.model;
    return {.path = read.origin,
            .tensors = {read.tensors.begin(), read.tensors.end()},
            .tokenizer = read.tokenizer,
            .inputs = signature_of(read)["inputs"],
            .configuration = tree(section)};
  }
  bool const folder = fs::is_directory(path, unreadable), best = folder && has_best(path);
  fs::path const file = best ? best_file(path) : folder ? path / "checkpoint.safetensors" : path;
  SafetensorsFile const opened(file);
  opened.check_seal();
  StartSource source{.path = file.string(), .tensors = {}, .tokenizer = {}, .inputs = {}, .best = best};
  for (std::string const& name : opened.names()) source.tensors.emplace(name, opened.tensor(name));
  auto const& metadata = opened.metadata();
  if (auto const tokenizer = metadata.find("tokenizer"); tokenizer != metadata.end()) source.tokenizer = tokenizer->second;
  if (auto const found = metadata.find("configuration"); found != metadata.end())
    source.configuration = parse_yaml(found->second, source.path + ": its configuration");
  if (auto const found = metadata.find("data"); found != metadata.end()) {
    Signature const data = Signature::parse(found->second, source.path + ": its metadata of the data");
    if (data.has("inputs")) source.inputs = data["inputs"];
  }
  return source;
}

/// A checkpoint, on its way into a model's parameters.
class WeightTransfer {
 public:
  WeightTransfer(StartSource source, Parameters& parameters, InitSettings const& init, Dataset const& data)
      : path_(source.path), parameters_(parameters), init_(init), given_(std::move(source.tensors)), before_(std::move(source.inputs)) {
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
    if (!before_ && inputs_) take_for_text();
  }

  std::string run() {
    NamedTensors values;
    for (auto const& [name, parameter] : parameters_.all()) values.emplace_back(name, value_of(name, parameter));
    for (auto const& [name, tensor] : given_) leave(name, tensor);
    if (!errors_.empty()) throw FileError(fmt::format("{}: {}", path_, joined_messages(errors_)));
    assign_from(path_, values, parameters_);
    std::string remark;
    if (!drawn_.empty()) remark = fmt::format("initialised at random: {}", joined_messages(drawn_));
    if (!left_.empty()) remark += fmt::format("{}not taken: {}", remark.empty() ? "" : "; ", joined_messages(left_));
    return remark;
  }

 private:
  /// A model that does not name its tokens has those of text alone, if the numbers agree.
  void take_for_text() {
    auto const table = given_.find("token_embedding.weight");
    if (table == given_.end() || table->second.rank() != 2) return;
    Index const words = inputs_->classes - std::ssize(inputs_->added);
    if (table->second.size(0) == words) before_ = PartSpec{.name = "inputs", .classes = words};
  }

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
      if (parameter.dtype() == DType::float32)
        copy_rows<float>(source, from, result, to, count);
      else
        copy_rows<double>(source, from, result, to, count);
    };
    take(0, 0, words);
    auto const elsewhere = [&](std::string const& mark) { return std::ranges::find(inputs_->added, mark) == inputs_->added.end(); };
    if (auto const count = std::ranges::count_if(before_->added, elsewhere); count > 0)
      left_.push_back(fmt::format("{} rows of {} of tokens that the data do not have", count, name));
    for (std::string const& mark : inputs_->added) {
      if (std::ranges::find(before_->added, mark) == before_->added.end())
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

  std::string path_;
  Parameters& parameters_;
  InitSettings const& init_;
  std::map<std::string, Tensor> given_;
  Index blocks_ = 0;                         ///< of the checkpoint
  std::optional<PartSpec> inputs_, before_;  ///< the tokens that the model reads, and that the checkpoint's did
  std::vector<std::string> errors_, drawn_, left_;
};

}  // namespace

std::optional<std::string> find_non_finite(NamedTensors const& tensors) {
  for (auto const& [name, tensor] : tensors) {
    auto found = tensor.dtype() == DType::float32   ? find_non_finite<float>(name, tensor)
                 : tensor.dtype() == DType::float64 ? find_non_finite<double>(name, tensor)
                                                    : std::nullopt;
    if (found) return found;
  }
  return std::nullopt;
}

void assign_from(std::string const& path, NamedTensors const& values, Parameters& parameters) {
  for (auto const& [name, value] : values) {
    if (value.dtype() == DType::int64) throw FileError(fmt::format("{}: tensor '{}' is int64, and no weights", path, name));
  }
  if (auto const damage = find_non_finite(values)) throw FileError(fmt::format("{}: {}: the weights are damaged", path, *damage));
  try {
    parameters.assign(values);
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: {}", path, error.what()));
  }
}

Start start_from(Parameters& parameters, InitSettings const& init, Dataset const& data, fs::path const& path) {
  StartSource source = source_of(path);
  std::string const file = source.path;
  bool const best = source.best;
  Yaml configuration = source.configuration;
  auto remark = WeightTransfer(std::move(source), parameters, init, data).run();
  if (best) remark = fmt::format("the run's best weights{}{}", remark.empty() ? "" : "; ", remark);
  return {{file, sha256_of_file(file)}, std::move(remark), std::move(configuration)};
}

}  // namespace heed
