// A checkpoint for nanoGPT's sample.py: ckpt.pt, which is what torch.save writes, a pickle and storages in a zip archive.

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/run/exchange/gpt_as_gpt2.hpp"
#include "experiments/run/exchange/pickle.hpp"
#include "experiments/run/exchange/portable_model.hpp"
#include "experiments/run/exchange/tokenizer_files.hpp"
#include "nn/files/utf8.hpp"
#include "nn/files/zip.hpp"

namespace heed {

namespace {

namespace fs = std::filesystem;

/// The settings of a GPT-2 that nanoGPT (2023) does not have; nothing: there are none.
std::optional<std::string> not_for_nanogpt(PortableModel const& model) {
  if (auto why = not_gpt2(model)) return why;
  GptSettings const s = gpt2_config(model).settings;
  std::vector<std::string> errors;
  if (!s.tie) errors.emplace_back("model.tie: false, where nanoGPT has true");
  if (s.hidden() != 4 * s.width)
    errors.push_back(fmt::format("model.mlp_width: {}, where nanoGPT has 4 * width, {}", s.hidden(), 4 * s.width));
  if (!s.activation.starts_with("gelu")) errors.push_back(fmt::format("model.activation: {}, where nanoGPT has gelu_exact", s.activation));
  if (s.attention.score == "dot" || s.attention.scale == "none")
    errors.emplace_back("model.attention: scores that are not scaled, where nanoGPT has scaled_dot");
  if (errors.empty()) return std::nullopt;
  return joined_messages(errors);
}

std::span<std::byte const> bytes_of_tensor(Tensor const& tensor) {
  return tensor.dtype() == DType::float64 ? std::as_bytes(tensor.data<double>()) : std::as_bytes(tensor.data<float>());
}

Pickle model_arguments(Gpt2Config const& config) {
  GptSettings const& s = config.settings;
  auto const count = [](char const* name, std::int64_t value) { return std::pair(Pickle::text(name), Pickle::integer(value)); };
  return Pickle::dictionary({count("n_layer", s.layers),
                             count("n_head", s.heads),
                             count("n_embd", s.width),
                             count("block_size", s.context),
                             count("vocab_size", config.vocabulary),
                             {Pickle::text("bias"), Pickle::truth(true)},
                             {Pickle::text("dropout"), Pickle::real(s.dropout)}});
}

/// The characters that tokens stand for; nothing if one of them stands for more or less than a character.
std::optional<std::vector<std::string>> characters_of(std::string const& tokenizer) {
  if (tokenizer.empty()) return std::nullopt;
  auto const restored = restore_tokenizer(tokenizer);
  std::vector<std::string> characters;
  for (std::int64_t token = 0; token < restored->vocabulary(); ++token) {
    auto text = restored->decode({token});
    std::size_t end = 0;
    if (text.empty() || !decode_utf8(text, end) || end != text.size()) return std::nullopt;
    characters.push_back(std::move(text));
  }
  return characters;
}

/// meta.pkl, by which sample.py makes characters of tokens.
std::string characters_file(std::vector<std::string> const& characters) {
  std::vector<std::pair<Pickle, Pickle>> to_token, to_character;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    Pickle const character = Pickle::text(characters[i]), token = Pickle::integer(static_cast<std::int64_t>(i));
    to_token.emplace_back(character, token);
    to_character.emplace_back(token, character);
  }
  return Pickle::dictionary({{Pickle::text("vocab_size"), Pickle::integer(static_cast<std::int64_t>(characters.size()))},
                             {Pickle::text("itos"), Pickle::dictionary(to_character)},
                             {Pickle::text("stoi"), Pickle::dictionary(to_token)}})
      .file();
}

/// Writes the tokenizer, and returns a sentence on how sample.py finds it.
std::string write_tokenizer(PortableModel const& model, fs::path const& folder) {
  if (auto const characters = characters_of(model.tokenizer)) {
    write_atomically(folder / "meta.pkl", characters_file(*characters));
    return "its tokens are characters: sample.py wants meta.pkl as data/heed/meta.pkl in nanoGPT's folder";
  }
  auto const remark = write_tokenizer_files(model.tokenizer, gpt2_config(model).settings.context, folder);
  return remark.empty() ? "sample.py takes tokens for those of GPT-2's vocabulary: this model's are in vocab.json" : remark;
}

void write_checkpoint(PortableModel const& model, fs::path const& path) {
  Gpt2Config const config = gpt2_config(model);
  ZipFile file(path);
  std::vector<std::pair<Pickle, Pickle>> state;
  for (Gpt2Tensor const& described : gpt2_tensors(config)) {
    Tensor const tensor = joined(described, model.tensors);
    std::string const storage = fmt::format("{}", state.size());
    state.emplace_back(Pickle::text(described.name), Pickle::tensor(tensor.shape(), tensor.dtype(), storage));
    file.add("archive/data/" + storage, bytes_of_tensor(tensor));
  }
  Pickle const embedding = state.front().second;
  state.emplace_back(Pickle::text("lm_head.weight"), embedding);  // tied: the same storage
  Pickle const dataset = Pickle::text("heed");                    // sample.py looks for data/heed/meta.pkl
  Pickle const all = Pickle::dictionary({{Pickle::text("model"), Pickle::dictionary(state)},
                                         {Pickle::text("model_args"), model_arguments(config)},
                                         {Pickle::text("config"), Pickle::dictionary({{Pickle::text("dataset"), dataset}})}});
  file.add("archive/data.pkl", all.file());
  file.add("archive/version", "3\n");
  file.commit();
}

std::vector<std::string> write_nanogpt(PortableModel const& model, fs::path const& folder) {
  write_checkpoint(model, folder / "ckpt.pt");
  std::vector<std::string> remarks{"in nanoGPT's folder: python sample.py --init_from=resume --device=cpu --out_dir=DIR",
                                   write_tokenizer(model, folder)};
  if (gpt2_config(model).settings.activation == "gelu")
    remarks.emplace_back("nanoGPT's GELU is the exact one, this model's the tanh form: in its model.py write nn.GELU(approximate='tanh')");
  return remarks;
}

Declared<ModelFormat> const nanogpt_format{{"nanogpt", "a ckpt.pt for nanoGPT's sample.py (PyTorch 2)", not_for_nanogpt, write_nanogpt}};

}  // namespace

}  // namespace heed
