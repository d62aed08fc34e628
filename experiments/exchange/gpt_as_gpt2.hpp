#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/exchange/formats.hpp"
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

/// The parts of one, by heed's names, from what transformers' file holds, [in, out].
NamedTensors parts_of(Gpt2Tensor const& tensor, Tensor const& stored);

/// One from its parts, as transformers has it: [in, out]. A bias that the model does not have is zeros. Throws Error for another part that
/// is missing.
Tensor stored(Gpt2Tensor const& tensor, NamedTensors const& parameters);

/// The shape of a model of kind gpt. Throws Error for another kind.
Gpt2Config gpt2_config(PortableModel const& model);

/// Why a model is not a GPT-2, in one line: keys that GPT-2 does not have, or parameters that it has besides GPT-2's. Nothing: it is one.
std::optional<std::string> not_gpt2(PortableModel const& model);

}  // namespace heed
