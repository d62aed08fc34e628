#pragma once

#include <filesystem>

#include "experiments/exchange/formats.hpp"
#include "nn/batch.hpp"

namespace heed {

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
