#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/exchange/huggingface.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

/// Activations, and what transformers calls them; the first name is the one that is written.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> activations{
    {{"gelu", "gelu_new"}, {"gelu", "gelu_pytorch_tanh"}, {"gelu_exact", "gelu"}, {"relu", "relu"}, {"silu", "silu"}, {"silu", "swish"}}};

/// The keys of a `config.json`.
class Keys {
 public:
  Keys(std::string_view text, std::string const& path) : path_(path), root_(parse_json<nlohmann::json>(text, path)) {
    if (!root_.is_object()) throw FileError(fmt::format("{}: is {}, not an object of keys", path, shown_value(root_)));
  }

  /// Null for a key that is missing or null.
  nlohmann::json const* find(char const* key) const {
    auto const found = root_.find(key);
    return found == root_.end() || found->is_null() ? nullptr : &*found;
  }

  Index count(char const* key, Index max_value) const {
    nlohmann::json const& value = needed(key);
    if (!value.is_number_integer() || value < 1 || value > max_value)
      refuse(key, fmt::format("wants an integer ≥ 1 and ≤ {}, but found {}", max_value, shown_value(value)));
    return value.get<Index>();
  }

  bool truth(char const* key, bool usual) const {
    nlohmann::json const* const value = find(key);
    if (value == nullptr) return usual;
    if (!value->is_boolean()) refuse(key, fmt::format("wants true or false, but found {}", shown_value(*value)));
    return value->get<bool>();
  }

  std::string word(char const* key) const {
    nlohmann::json const& value = needed(key);
    if (!value.is_string()) refuse(key, fmt::format("wants a word in quotes, but found {}", shown_value(value)));
    return value.get<std::string>();
  }

  static std::string shown_value(nlohmann::json const& value) { return shown(json_text(value)); }

  [[noreturn]] void refuse(std::string const& key, std::string const& why) const {
    throw FileError(fmt::format("{}: {}: {}", path_, key, why));
  }

 private:
  nlohmann::json const& needed(char const* key) const {
    if (nlohmann::json const* const value = find(key)) return *value;
    auto const names = mapped(root_.items(), [](auto const& item) { return item.key(); });
    refuse(key, fmt::format("is missing{}", did_you_mean(key, names)));
  }

  std::string const& path_;
  nlohmann::json root_;
};

std::string read_activation(Keys const& keys) {
  auto const name = keys.word("activation_function");
  auto const found = std::ranges::find(activations, name, &std::pair<std::string_view, std::string_view>::second);
  if (found != activations.end()) return std::string(found->first);
  keys.refuse("activation_function", fmt::format("{} is not among those that heed has: {}", shown(name),
                                                 fmt::join(mapped(activations, [](auto const& each) { return each.second; }), ", ")));
}

/// Throws FileError for settings that a model of kind gpt does not have.
void check_supported(Keys const& keys) {
  if (auto const type = keys.word("model_type"); type != "gpt2")
    keys.refuse("model_type", fmt::format("is {}: heed reads gpt2", shown(type)));
  auto const expect_false = [&](char const* key, char const* why) {
    if (keys.truth(key, false)) keys.refuse(key, fmt::format("true: {}", why));
  };
  expect_false("scale_attn_by_inverse_layer_idx", "heed's scores are scaled alike in all layers");
  expect_false("reorder_and_upcast_attn", "heed computes scores in the type of the weights");
  expect_false("add_cross_attention", "a model of kind gpt attends to no second text");
  for (char const* const key : {"pruned_heads", "quantization_config"})
    if (auto const* const value = keys.find(key); value != nullptr && !value->empty())
      keys.refuse(key, fmt::format("{}: heed reads whole weights alone", Keys::shown_value(*value)));
  if (auto const* const epsilon = keys.find("layer_norm_epsilon"); epsilon != nullptr && *epsilon != 1e-5)
    keys.refuse("layer_norm_epsilon", fmt::format("is {}: heed's layer norm has 1e-05", Keys::shown_value(*epsilon)));
}

/// The keys of a model, with their values, that GPT-2 has no word for, in one line; nothing if it can be written as one.
std::optional<std::string> gpt2_unavailable(Choice const& model) {
  auto* const given = dynamic_cast<GptSettings*>(model.settings.get());
  if (model.kind != "gpt" || given == nullptr) return fmt::format("model.kind: {}, where GPT-2 is a gpt", model.kind);
  // Of any value there; weights only start with a spread, and without biases they are zeros.
  static constexpr std::array free_keys{"layers", "heads", "width", "context", "mlp_width", "dropout", "query_key_spread", "bias", "tie"};
  GptSettings near;  // the nearest that GPT-2 can be: what else differs from it has no word there
  if (std::ranges::find(activations, given->activation, &std::pair<std::string_view, std::string_view>::first) != activations.end())
    near.activation = given->activation;
  if (given->attention.score == "dot") near.attention.score = "dot";
  if (given->attention.scale == "none") near.attention.scale = "none";
  if (given->key_heads == given->heads) near.key_heads = given->key_heads;
  if (given->width % given->heads == 0) {
    if (given->key_width == given->width / given->heads) near.key_width = given->key_width;
    if (given->value_width == given->width / given->heads) near.value_width = given->value_width;
  }
  Yaml const here = tree(*given), there = tree(near);
  std::vector<std::string> errors;
  for (std::string const& key : differing_keys(here, there)) {
    if (std::ranges::find(free_keys, key) != free_keys.end()) continue;
    auto const value = [&](Yaml const& of) { return of.find(key) != nullptr ? emit_line(*of.find(key)) : std::string("none"); };
    errors.push_back(fmt::format("model.{}: {}, where GPT-2 has {}", key, value(here), value(there)));
  }
  return errors.empty() ? std::nullopt : std::optional(joined_messages(errors));
}

}  // namespace

Gpt2Config read_gpt2_config(std::string_view text, std::string const& path) {
  Keys const keys(text, path);
  check_supported(keys);
  Gpt2Config config;
  GptSettings& s = config.settings;
  s.layers = keys.count("n_layer", 1000);
  s.heads = keys.count("n_head", 1000);
  s.width = keys.count("n_embd", 65536);
  s.context = keys.count("n_positions", 1 << 20);
  config.vocabulary = keys.count("vocab_size", 1 << 28);
  if (s.width % s.heads != 0) keys.refuse("n_head", fmt::format("{} heads do not divide n_embd, {}", s.heads, s.width));
  if (keys.find("n_ctx") != nullptr && keys.count("n_ctx", 1 << 20) != s.context)
    keys.refuse("n_ctx", fmt::format("{} differs from n_positions, {}", keys.count("n_ctx", 1 << 20), s.context));
  if (keys.find("n_inner") != nullptr) s.mlp_width = keys.count("n_inner", 1 << 20);
  s.activation = read_activation(keys);
  s.attention.scale = keys.truth("scale_attn_weights", true) ? "rsqrt" : "none";
  s.tie = keys.truth("tie_word_embeddings", true);
  return config;
}

std::string gpt2_config_text(Gpt2Config const& config, DType dtype, std::optional<Index> end) {
  GptSettings const& s = config.settings;
  auto const* const activation = std::ranges::find(activations, s.activation, &std::pair<std::string_view, std::string_view>::first);
  auto const optional = [](std::optional<Index> const& value) { return value ? nlohmann::json(*value) : nlohmann::json(); };
  bool const scales = s.attention.score == "scaled_dot" && s.attention.scale == "rsqrt";
  nlohmann::ordered_json const keys{{"architectures", {"GPT2LMHeadModel"}},
                                    {"model_type", "gpt2"},
                                    {"n_layer", s.layers},
                                    {"n_head", s.heads},
                                    {"n_embd", s.width},
                                    {"n_inner", optional(s.mlp_width)},
                                    {"n_positions", s.context},
                                    {"n_ctx", s.context},
                                    {"vocab_size", config.vocabulary},
                                    {"activation_function", activation->second},
                                    {"layer_norm_epsilon", 1e-5},
                                    {"resid_pdrop", s.dropout},
                                    {"embd_pdrop", s.dropout},
                                    {"attn_pdrop", s.dropout},
                                    {"scale_attn_weights", scales},
                                    {"scale_attn_by_inverse_layer_idx", false},
                                    {"reorder_and_upcast_attn", false},
                                    {"tie_word_embeddings", s.tie},
                                    {"initializer_range", 0.02},
                                    {"use_cache", true},
                                    {"bos_token_id", optional(end)},
                                    {"eos_token_id", optional(end)},
                                    {"torch_dtype", to_string(dtype)}};
  return json_text(keys, 2) + "\n";
}

Choice model_choice_of(Gpt2Config const& config) {
  Choice model = model_choice();
  model.kind = "gpt";
  model.settings = std::make_shared<GptSettings>(config.settings);
  return model;
}

Shape Gpt2Tensor::stored() const {
  Index const outputs = std::ssize(parts) * shape[0];
  if (shape.rank() == 1) return {outputs};
  return in_first ? Shape{shape[1], outputs} : Shape{outputs, shape[1]};
}

std::vector<Gpt2Tensor> gpt2_tensors(Gpt2Config const& config) {
  GptSettings const& s = config.settings;
  std::vector<Gpt2Tensor> all;
  auto const norm = [&](std::string const& there, std::string const& here) {
    for (char const* const end : {".weight", ".bias"}) all.push_back({there + end, {here + end}, {s.width}});
  };
  auto const linear = [&](std::string const& there, std::vector<std::string> const& here, Index in, Index out) {
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
  for (Index i = 0; i < s.layers; ++i) {
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

Gpt2Config gpt2_config(PortableModel const& model) { return {dynamic_cast<GptSettings const&>(*model.model.settings), model.vocabulary}; }

std::optional<std::string> not_gpt2(PortableModel const& model) {
  if (auto unavailable = gpt2_unavailable(model.model)) return unavailable;
  std::set<std::string> known;
  for (Gpt2Tensor const& tensor : gpt2_tensors(gpt2_config(model))) known.insert(tensor.parts.begin(), tensor.parts.end());
  std::vector<std::string> errors;
  for (auto const& [name, tensor] : model.tensors)
    if (!known.contains(name)) errors.push_back(fmt::format("its parameter {} has no name in GPT-2", name));
  return errors.empty() ? std::nullopt : std::optional(joined_messages(errors));
}

}  // namespace heed
