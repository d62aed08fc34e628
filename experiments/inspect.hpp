#pragma once

#include <cstddef>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "experiments/experiment.hpp"
#include "experiments/session.hpp"

namespace heed {

/// What the command line says of an inspection.
struct InspectOptions {
  std::filesystem::path run;  ///< a run's folder or its checkpoint, or the run's name in the output folder
  Places places;
  std::string text;            ///< tokens' numbers for a model of data without a text; "[MASK]" in it is a masked model's own token
  std::filesystem::path save;  ///< empty: attention.npz in the run's folder
  std::size_t width = 0;       ///< columns of the terminal; 0: any number
  bool quiet = false;          ///< no table
};

/// Attention weights of a trained model for a text: a table for every layer and head on `out`, and an .npz file with `tokens` (int64 [n]),
/// `labels` (texts [n]) and `layer0.weights`, `layer1.weights`, … [H, n, m]. Throws ConfigError for a text that the model cannot read and
/// if there is no such run, FileError for a damaged run, Error for a file that cannot be
/// written.
Exit inspect(InspectOptions const& options, std::ostream& out);

/// A token as something that can be seen: its text, with blanks and ends of lines as signs and bytes that are no character as \xE2; the
/// one after the vocabulary "[MASK]", the one that ends texts "<eos>". Its number where there is no tokenizer.
std::string token_label(std::optional<Tokenizer> const& tokenizer, std::int64_t token);

/// Weights [n, m] as lines of hundredths below their keys: a row a query, "·" for a weight of exactly 0. Keys beyond `width` columns
/// (0: any number) follow below, with the queries again.
std::string attention_table(Tensor const& weights, std::vector<std::string> const& queries, std::vector<std::string> const& keys,
                            std::size_t width);

}  // namespace heed
