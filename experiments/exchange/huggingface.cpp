#include "experiments/exchange/huggingface.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/shape.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/model.hpp"

namespace heed {

namespace {

constexpr char const *config_name = "config.json", *weights_name = "model.safetensors";
constexpr char const* own_name = "heed_tokenizer.json";  // of what makes other tokens than byte pairs
constexpr std::string_view prefix = "transformer.", head_name = "lm_head.weight";

/// Refuses weights in other files than the one that is read, and says what to do.
void check_weights_file(fs::path const& folder) {
  if (is_there(folder / weights_name)) return;
  auto const refuse = [&](std::string const& found, std::string const& how) {
    throw FileError(fmt::format("{}: heed reads {}: in Python, AutoModelForCausalLM.from_pretrained(\"{}\").save_pretrained(\"NEW\", {})",
                                (folder / found).string(), weights_name, folder.string(), how));
  };
  for (char const* const shards : {"model.safetensors.index.json", "pytorch_model.bin.index.json"})
    if (is_there(folder / shards)) refuse(shards, "safe_serialization=True, max_shard_size=\"100GB\"");
  for (char const* const other : {"pytorch_model.bin", "tf_model.h5", "flax_model.msgpack"})
    if (is_there(folder / other)) refuse(other, "safe_serialization=True");
  throw FileError(fmt::format("{}: there is no such file beside {}", (folder / weights_name).string(), config_name));
}

/// The tensors of a file by the names of GPT2LMHeadModel, without the buffers of masks; what each is called in the file. Files of GPT2Model
/// have no prefix.
std::map<std::string, std::string> names_in(SafetensorsFile const& file) {
  static std::regex const buffer(R"(h\.\d+\.attn\.(masked_)?bias)");
  std::map<std::string, std::string> names;
  for (std::string const& name : file.names()) {
    std::string const plain = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
    if (std::regex_match(plain, buffer)) continue;
    std::string const full = plain == head_name ? plain : std::string(prefix) + plain;
    if (!names.emplace(full, name).second)
      throw FileError(fmt::format("{}: holds {} both with and without {}", file.path().string(), plain, prefix));
  }
  return names;
}

/// Throws FileError unless the file holds these, in their shapes, and nothing else.
void check_tensors(SafetensorsFile const& file, std::map<std::string, std::string> const& names, std::vector<Gpt2Tensor> const& wanted) {
  std::vector<std::string> errors;
  std::set<std::string> known{std::string(head_name)};  // of a tied head: compared with the embeddings when these are there
  for (Gpt2Tensor const& tensor : wanted) {
    known.insert(tensor.name);
    auto const found = names.find(tensor.name);
    if (found == names.end()) {
      errors.push_back(fmt::format("{} is missing", tensor.name));
    } else if (Shape const& shape = file.shape(found->second); !(shape == tensor.stored())) {
      errors.push_back(fmt::format("{} is {}, where {} says {}", found->second, to_string(shape), config_name, to_string(tensor.stored())));
    } else if (file.dtype(found->second) == DType::int64) {
      errors.push_back(fmt::format("{} holds integers, and no weights", found->second));
    }
  }
  for (auto const& [full, name] : names)
    if (!known.contains(full)) errors.push_back(fmt::format("{} is no part of a GPT-2", name));
  if (!errors.empty()) throw FileError(fmt::format("{}: {}", file.path().string(), joined_messages(errors)));
}

/// The parts of one tensor, by heed's names, from what transformers' file holds, [in, out].
NamedTensors parts_of(Gpt2Tensor const& tensor, Tensor const& stored) {
  NoGrad const quiet;
  Tensor const whole = tensor.in_first ? transpose(stored) : stored;
  NamedTensors parts;
  Index const rows = tensor.shape[0];
  for (std::size_t i = 0; i < tensor.parts.size(); ++i) parts.emplace_back(tensor.parts[i], whole.rows(static_cast<Index>(i) * rows, rows));
  return parts;
}

NamedTensors read_tensors(SafetensorsFile const& file, Gpt2Config const& config) {
  auto const names = names_in(file);
  auto const wanted = gpt2_tensors(config);
  check_tensors(file, names, wanted);
  NamedTensors result;
  for (Gpt2Tensor const& tensor : wanted)
    std::ranges::move(parts_of(tensor, file.tensor(names.at(tensor.name))), std::back_inserter(result));
  auto const head = names.find(std::string(head_name));
  if (config.settings.tie && head != names.end() && !same_bits(file.tensor(head->second), result.front().second))
    throw FileError(fmt::format("{}: {} differs from {}, where {} says tie_word_embeddings", file.path().string(), head->second,
                                names.at("transformer.wte.weight"), config_name));
  return result;
}

/// The tokenizer in the folder of another program's model, as Tokenizer::json() writes it; empty: there is none. It is read from the byte
/// pairs that read_byte_pairs() reads, else from a file that write_tokenizer_files() wrote for another kind. Throws FileError that begins
/// with the file.
std::string read_tokenizer_files(fs::path const& folder) {
  for (char const* const name : {"vocab.json", "merges.txt", "encoder.json", "vocab.bpe", "tokenizer.json"})
    if (is_there(folder / name)) return read_byte_pairs(folder)->json();
  if (!is_there(folder / own_name)) return {};
  auto text = read_file(folder / own_name);
  try {
    restore_tokenizer(text);
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: {}", (folder / own_name).string(), error.what()));
  }
  return text;
}

/// Writes into such a folder what makes tokens of text: of byte pairs `vocab.json` and `merges.txt`, and `tokenizer_config.json` and
/// `special_tokens_map.json` for transformers; of another kind, of which transformers has none, `heed_tokenizer.json`. Nothing of "".
/// Throws Error. Returns what its user must know.
std::vector<std::string> write_tokenizer_files(std::string const& tokenizer, Index context, fs::path const& folder) {
  if (tokenizer.empty()) return {"its data were tokens without a text: the folder has no tokenizer"};
  auto const restored = restore_tokenizer(tokenizer);
  auto const* const byte_pairs = dynamic_cast<BytePairs const*>(restored.get());
  if (byte_pairs == nullptr) {
    write_atomically(folder / own_name, tokenizer);
    return {fmt::format("its tokens are not byte pairs: only heed reads what makes them of text, {}", own_name)};
  }
  write_byte_pairs(*byte_pairs, folder);
  // As of transformers' GPT2Tokenizer, which adds an end-of-text token unless they say that there is none.
  auto const end = byte_pairs->end();
  nlohmann::ordered_json const mark = end ? nlohmann::ordered_json(*byte_pairs->mark(*end)) : nlohmann::ordered_json();
  nlohmann::ordered_json const settings{{"tokenizer_class", "GPT2Tokenizer"},
                                        {"model_max_length", context},
                                        {"add_prefix_space", false},
                                        {"bos_token", mark},
                                        {"eos_token", mark},
                                        {"unk_token", mark}};
  write_atomically(folder / "tokenizer_config.json", json_text(settings, 2) + "\n");
  auto marks = nlohmann::ordered_json::object();
  for (char const* const name : {"bos_token", "eos_token", "unk_token"})
    if (!settings[name].is_null()) marks[name] = settings[name];
  write_atomically(folder / "special_tokens_map.json", json_text(marks, 2) + "\n");
  return {};
}

/// One tensor from its parts, as transformers has it: [in, out]. A bias that the model does not have is zeros. Throws Error for another
/// part that is missing.
Tensor stored(Gpt2Tensor const& tensor, NamedTensors const& parameters) {
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
  Tensor const whole = parts.size() == 1 ? parts.front() : concatenate(parts, 0);
  return tensor.in_first ? transpose(whole) : whole;
}

std::vector<std::string> write_huggingface(PortableModel const& model, fs::path const& folder) {
  Gpt2Config const config = gpt2_config(model);
  NamedTensors tensors;
  for (Gpt2Tensor const& tensor : gpt2_tensors(config)) tensors.emplace_back(tensor.name, stored(tensor, model.tensors));
  save_safetensors(folder / weights_name, tensors, {{"format", "pt"}});
  auto const end = model.tokenizer.empty() ? std::nullopt : restore_tokenizer(model.tokenizer)->end();
  write_atomically(folder / config_name, gpt2_config_text(config, tensors.front().second.dtype(), end));
  return write_tokenizer_files(model.tokenizer, config.settings.context, folder);
}

Gpt2Config config_in(fs::path const& folder) {
  auto const path = folder / config_name;
  return read_gpt2_config(read_file(path), path.string());
}

Declared<ModelFormat> const huggingface_format{
    {"huggingface", "a GPT-2 for transformers (GPT2LMHeadModel.from_pretrained)", not_gpt2, write_huggingface}};

}  // namespace

bool is_huggingface_folder(fs::path const& folder) {
  return std::ranges::any_of(std::array{config_name, weights_name, "model.safetensors.index.json", "pytorch_model.bin"},
                             [&](char const* name) { return is_there(folder / name); });
}

Choice gpt2_model_in(fs::path const& folder) { return model_choice_of(config_in(folder)); }

PortableModel read_gpt2(fs::path const& folder) {
  auto const config = config_in(folder);
  check_weights_file(folder);
  SafetensorsFile const file(folder / weights_name);
  PortableModel model{file.path().string(), model_choice_of(config), config.vocabulary, read_tensors(file, config),
                      read_tokenizer_files(folder)};
  if (model.tokenizer.empty()) return model;
  if (auto const tokens = restore_tokenizer(model.tokenizer)->vocabulary(); tokens > config.vocabulary)
    throw FileError(fmt::format("{}: vocab_size: {}, but the tokenizer beside it has {} tokens", (folder / config_name).string(),
                                config.vocabulary, tokens));
  return model;
}

Signature signature_of(PortableModel const& model) {
  Signature data = Signature::tokens(model.vocabulary);
  if (model.tokenizer.empty()) return data;
  PartSpec inputs = data["inputs"];
  for (auto token = restore_tokenizer(model.tokenizer)->vocabulary(); token < model.vocabulary; ++token)
    inputs.added.push_back(fmt::format("[{}]", token));
  data.set(inputs);
  return data;
}

}  // namespace heed
