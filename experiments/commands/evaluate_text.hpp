#pragma once

#include <ostream>

#include "experiments/commands/evaluate.hpp"

namespace heed {

/// `heed evaluate RUN --text FILE` and `--ids FILE`: the loss of a text, in windows of the model's context (text_loss), as nat a token,
/// perplexity and, of text without unknown words, bits a byte and perplexity a byte and a word, all as the metrics of these names have them
/// (metric/text_units.cpp). A table to `out`, and `save` if it is named. Throws ConfigError for a model that predicts no
/// next token or has no tokenizer, and for options of held-out data; FileError for a text that cannot be read or holds what the tokenizer
/// does not know.
Exit evaluate_text(EvaluateOptions const& options, std::ostream& out);

}  // namespace heed
