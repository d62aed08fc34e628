// A checkpoint for nanoGPT's sample.py: ckpt.pt, which is what torch.save writes, a pickle and storages in a zip archive.

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/exchange/gpt2_tensors.hpp"
#include "experiments/exchange/model_format.hpp"
#include "experiments/exchange/pickle.hpp"
#include "experiments/text/zip.hpp"

namespace heed {

namespace {

namespace fs = std::filesystem;

/// What nanoGPT's GPT of 2023 has fixed where GPT-2 has a choice.
std::optional<std::string> lacks(PortableModel const& model) {
  if (auto why = not_gpt2(model)) return why;
  GptSettings const s = gpt2_config(model).settings;
  std::vector<std::string> complaints;
  if (!s.tie) complaints.emplace_back("model.tie: false, where nanoGPT has true");
  if (s.hidden() != 4 * s.width)
    complaints.push_back(fmt::format("model.mlp_width: {}, where nanoGPT has 4 * width, {}", s.hidden(), 4 * s.width));
  if (!s.activation.starts_with("gelu"))
    complaints.push_back(fmt::format("model.activation: {}, where nanoGPT has gelu_exact", s.activation));
  if (s.attention.score == "dot" || s.attention.scale == "none")
    complaints.emplace_back("model.attention: scores that are not scaled, where nanoGPT has scaled_dot");
  if (complaints.empty()) return std::nullopt;
  return in_short(complaints);
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

std::vector<std::string> write(PortableModel const& model, fs::path const& folder) {
  Gpt2Config const config = gpt2_config(model);
  ZipFile file(folder / "ckpt.pt");
  std::vector<std::pair<Pickle, Pickle>> state;
  for (Gpt2Tensor const& described : gpt2_tensors(config)) {
    Tensor const tensor = joined(described, model.tensors);
    std::string const storage = fmt::format("{}", state.size());
    state.emplace_back(Pickle::text(described.name), Pickle::tensor(tensor.shape(), tensor.dtype(), storage));
    file.add("archive/data/" + storage, bytes_of_tensor(tensor));
  }
  Pickle const embedding = state.front().second;
  state.emplace_back(Pickle::text("lm_head.weight"), embedding);  // tied: the same storage
  file.add("archive/data.pkl",
           Pickle::dictionary({{Pickle::text("model"), Pickle::dictionary(state)}, {Pickle::text("model_args"), model_arguments(config)}})
               .file());
  file.add("archive/version", "3\n");
  file.commit();
  std::vector<std::string> remarks{"in nanoGPT's folder: python sample.py --init_from=resume --device=cpu --out_dir=DIR"};
  if (config.settings.activation == "gelu")
    remarks.emplace_back("nanoGPT's GELU is the exact one, this model's the tanh form: in its model.py write nn.GELU(approximate='tanh')");
  return remarks;
}

DeclaredModelFormat const declared{{"nanogpt", "a ckpt.pt for nanoGPT's sample.py (PyTorch 2)", lacks, write}};

}  // namespace

}  // namespace heed
