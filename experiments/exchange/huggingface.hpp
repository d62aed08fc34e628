#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/exchange/formats.hpp"
#include "nn/batch.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

/// A GPT-2's shape (Radford et al. 2019), as transformers keeps it in `config.json`.
struct Gpt2Config {
  GptSettings settings;
  Index vocabulary = 0;
};

/// Reads the text of a `config.json`. Dropout, which acts in training only, stays 0. Throws FileError "PATH: KEY: …" if it is not a GPT-2,
/// or one that a model of kind gpt cannot represent.
Gpt2Config read_gpt2_config(std::string_view text, std::string const& path);

/// The text of a `config.json`, for what not_gpt2() says nothing against. `end`: the token that begins and ends a text; nothing: none does.
std::string gpt2_config_text(Gpt2Config const& config, DType dtype, std::optional<Index> end);

/// `model:` of such a shape.
Choice model_choice_of(Gpt2Config const& config);

/// One tensor of GPT-2, and those of heed's gpt that it is made of:
///
///     h.0.attn.c_attn.weight  [width, 3·width]  =  (blocks.0.attention.query.weight, ….key.weight, ….value.weight, each [width, width])ᵀ
struct Gpt2Tensor {
  std::string name;                ///< as GPT2LMHeadModel has it: "transformer.h.0.attn.c_attn.weight"
  std::vector<std::string> parts;  ///< heed's names, in the order of the outputs; all of one shape
  Shape shape;                     ///< of each part
  bool in_first = false;           ///< [in, out] in transformers' files (Conv1D), while heed has [out, in]

  /// The shape of the whole in transformers.
  Shape stored() const;
};

/// All of a GPT-2, in the order of its modules.
std::vector<Gpt2Tensor> gpt2_tensors(Gpt2Config const& config);

/// The shape of a model of kind gpt.
Gpt2Config gpt2_config(PortableModel const& model);

/// Why a model is not a GPT-2, in one line: keys that GPT-2 does not have, or parameters that it has besides GPT-2's. Nothing: it is one.
std::optional<std::string> not_gpt2(PortableModel const& model);

/// Whether a folder looks like one of Hugging Face's `transformers`: it holds a `config.json`, or weights by the names that
/// save_pretrained() gives them.
bool is_huggingface_folder(std::filesystem::path const& folder);

/// A GPT-2 (Radford et al. 2019) from such a folder: `config.json` and `model.safetensors`, with the names of GPT2LMHeadModel or of
/// GPT2Model, weights [in, out] turned and the stacked ones of queries, keys and values taken apart. Tensors have the types of the file,
/// halves become float32. Buffers of masks are left out. Its tokenizer is that of the folder (read_tokenizer_files).
///
/// Throws FileError that begins with the file: for a key or a tensor that is missing, left over or of another shape than `config.json`
/// says, for what a model of kind gpt cannot be, and for weights in other files than `model.safetensors`, with what to do.
PortableModel read_gpt2(std::filesystem::path const& folder);

/// The section `model` of such a folder, by its `config.json`. Throws FileError as read_gpt2().
Choice gpt2_model_in(std::filesystem::path const& folder);

/// Its tokens. Rows of embeddings beyond those of the tokenizer (nanoGPT's table has 50304, which is faster on a GPU) are added tokens,
/// which no text has: "[50257]".
Signature signature_of(PortableModel const& model);

}  // namespace heed
