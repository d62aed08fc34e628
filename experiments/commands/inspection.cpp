#include "experiments/commands/inspection.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

namespace heed {

Inspected::Inspected(std::filesystem::path of, TrainedModel trained) : path(std::move(of)), run(std::move(trained)) {
  if (!run.tokenizer.empty()) tokenizers.inputs = tokenizer_of(run, path.string());
  tokenizers.added = run.data["inputs"].added;
}

std::string Inspected::page(InspectOptions const& options, AttentionMaps const&) const {
  if (!options.picture.empty()) throw ConfigError("--picture", fmt::format("no attention of {} attends to a picture", path.string()));
  return "";
}

Tensor Inspected::row_of(std::vector<Index> const& tokens) { return Tensor::of(tokens, {1, std::ssize(tokens)}); }

std::vector<Index> Inspected::encoded(std::string_view text) const try {
  auto const& tokenizer = *tokenizers.inputs;
  auto const& added = run.data["inputs"].added;
  bool const masks = std::ranges::find(added, mask_text) != added.end();
  std::vector<Index> result;
  for (bool first = true;; first = false) {
    auto const end = masks ? text.find(mask_text) : text.npos;
    auto const part = tokenizer.encode(text.substr(0, end));
    bool const begins_again = !first && tokenizer.begin() && !part.empty();  // a sentence, which it does not
    result.insert(result.end(), part.begin() + (begins_again ? 1 : 0), part.end());
    if (end == text.npos) return result;
    result.push_back(run.data["inputs"].token(mask_text));
    text.remove_prefix(end + mask_text.size());
  }
} catch (Error const& error) {
  throw ConfigError("--text", error.what());
}

std::vector<Index> Inspected::numbers(std::string const& text, char const* argument, char const* part) const {
  auto const classes = run.data[part].classes;
  std::vector<Index> result;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    Index token = -1;
    auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (error != std::errc() || end != word.data() + word.size() || token < 0 || token >= classes)
      throw ConfigError(argument,
                        fmt::format("'{}' is not the number of a token, 0 … {} (the run's data have no text)", word, classes - 1));
    result.push_back(token);
  }
  if (result.empty()) throw ConfigError(argument, "holds no tokens");
  return result;
}

void Inspected::check_length(char const* argument, std::size_t tokens) const {
  constexpr Index enough = 2048;
  if (auto const max_tokens = std::max(enough, run.model->context()); static_cast<Index>(tokens) > max_tokens)
    throw ConfigError(argument, fmt::format("is {} tokens long, but {} at most are inspected; give a part of it", tokens, max_tokens));
}

}  // namespace heed
