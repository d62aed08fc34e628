#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nn/models/gpt.hpp"

namespace heed {

/// A GPT-2's shape (Radford et al. 2019), as transformers keeps it in `config.json`.
struct Gpt2Config {
  GptSettings settings;
  std::int64_t vocabulary = 0;
};

/// Of the text of a `config.json`, whose path messages begin with. Dropout, which acts in training alone, is left at 0. Throws FileError
/// that names the key for what is no GPT-2, or is one that a model of kind gpt cannot be.
Gpt2Config read_gpt2_config(std::string_view text, std::string const& path);

/// The text of a `config.json`, for what gpt2_unavailable() nothing of. `end`: the token that begins and ends a text; nothing: none does.
std::string gpt2_config_text(Gpt2Config const& config, DType dtype, std::optional<std::int64_t> end);

/// `model:` of such a shape.
Choice model_choice_of(Gpt2Config const& config);

/// The keys of a model, with their values, that GPT-2 has no word for, in one line; nothing if it can be written as one.
std::optional<std::string> gpt2_unavailable(Choice const& model);

}  // namespace heed
