#include "experiments/inspect.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "experiments/npz.hpp"
#include "experiments/table.hpp"
#include "experiments/utf8.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view mask_text = "[MASK]";

ConfigError refusal(std::string const& argument, std::string const& message) {
  return {Place{std::make_shared<std::string>(argument)}, message};
}

std::string to_right(std::string const& text, std::size_t width) {
  auto const taken = columns(text);
  return (taken < width ? std::string(width - taken, ' ') : std::string()) + text;
}

std::string to_left(std::string const& text, std::size_t width) {
  auto const taken = columns(text);
  return text + (taken < width ? std::string(width - taken, ' ') : std::string());
}

std::string hundredths(double weight) {
  if (weight == 0) return "·";
  return std::isfinite(weight) ? fmt::format("{:.0f}", 100 * weight) : "NaN";
}

/// A token's text as something that can be seen: blanks and ends of lines by their signs, bytes that are no character as \xE2.
std::string visible(std::string const& text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    auto const start = i;
    auto const character = decode_utf8(text, i);
    if (character == U' ')
      shown += "␣";
    else if (character == U'\n')
      shown += "⏎";
    else if (!character || *character < 0x20 || (*character >= 0x7F && *character < 0xA0))
      for (auto at = start; at < i; ++at) shown += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[at]));
    else
      shown += text.substr(start, i - start);
  }
  return shown;
}

/// The weights [H, n, m] of every layer, in order.
std::vector<Tensor> weights_of(Model const& model, std::vector<std::int64_t> const& tokens) {
  NoGrad const no_grad;
  std::vector<Tensor> layers;
  Observer observer;
  observer.attention = [&](std::string const&, AttentionView const& view) {
    layers.push_back(view.weights.viewed({view.weights.size(1), view.weights.size(2), view.weights.size(3)}));
  };
  Pass pass;
  pass.observer = &observer;
  model.run({{"inputs", Tensor::of(tokens, {1, static_cast<std::int64_t>(tokens.size())})}}, pass);
  return layers;
}

/// A run's model and the tokens of a text.
struct Subject {
  explicit Subject(InspectOptions const& options) : path(find_run(options.run, options.places)), run(open_run(path)) {
    if (!run.tokenizer.empty()) tokenizer = tokenizer_of(run, path.string());
    mask = tokenizer && tokenizer->vocabulary() < run.model->vocabulary() ? std::optional(tokenizer->vocabulary()) : std::nullopt;
    tokens = tokenizer ? encoded(options.text) : numbers(options.text);
    if (tokens.empty()) throw refusal("--text", "holds no tokens");
    auto const length = static_cast<std::int64_t>(tokens.size());
    if (auto const limit = run.model->limit(); limit && length > *limit)
      throw refusal("--text", fmt::format("is {} tokens long, but the model reads {} at most", length, *limit));
  }

  std::vector<std::int64_t> encoded(std::string_view text) const try {
    std::vector<std::int64_t> result;
    for (bool first = true;; first = false) {
      auto const end = mask ? text.find(mask_text) : text.npos;
      auto const part = tokenizer->encode(text.substr(0, end));
      bool const begins_again = !first && tokenizer->end() && !part.empty();  // a sentence, which it does not
      result.insert(result.end(), part.begin() + (begins_again ? 1 : 0), part.end());
      if (end == text.npos) return result;
      result.push_back(*mask);
      text.remove_prefix(end + mask_text.size());
    }
  } catch (Error const& error) {
    throw refusal("--text", error.what());
  }

  std::vector<std::int64_t> numbers(std::string const& text) const {
    std::vector<std::int64_t> result;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      std::int64_t token = -1;
      auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
      if (error != std::errc() || end != word.data() + word.size() || token < 0 || token >= run.model->vocabulary())
        throw refusal("--text", fmt::format("'{}' is not the number of a token, 0 … {} (the run's data have no text)", word,
                                            run.model->vocabulary() - 1));
      result.push_back(token);
    }
    return result;
  }

  /// The weights of every layer. Throws ConfigError for what the model has against such rows.
  std::vector<Tensor> observed() const try { return weights_of(*run.model, tokens); } catch (Error const& error) {
    throw refusal(path.string(), error.what());
  }

  fs::path path;
  TrainedModel run;
  std::optional<Tokenizer> tokenizer;
  std::optional<std::int64_t> mask;
  std::vector<std::int64_t> tokens;
};

}  // namespace

std::string token_label(std::optional<Tokenizer> const& tokenizer, std::int64_t token) {
  if (!tokenizer) return std::to_string(token);
  if (token == tokenizer->vocabulary()) return std::string(mask_text);
  auto const mark = tokenizer->mark(token);
  return mark ? *mark : visible(tokenizer->decode({token}));
}

std::string attention_table(Tensor const& weights, std::vector<std::string> const& queries, std::vector<std::string> const& keys,
                            std::size_t width) {
  std::size_t head = 0, cell = 3;  // "100"
  for (auto const& query : queries) head = std::max(head, std::min<std::size_t>(columns(query), 12));
  for (auto const& key : keys) cell = std::max(cell, std::min<std::size_t>(columns(key), 6));
  auto const room = width == 0 ? keys.size() : width > head + 2 ? (width - head - 2) / (cell + 1) : 0;
  auto const stripe = std::max<std::size_t>(room, 1);

  std::string page;
  for (std::size_t first = 0; first < keys.size(); first += stripe) {
    auto const last = std::min(first + stripe, keys.size());
    std::string line = "  " + std::string(head, ' ');
    for (auto j = first; j < last; ++j) line += " " + to_right(cut(keys[j], cell), cell);
    page += line + "\n";
    for (std::size_t i = 0; i < queries.size(); ++i) {
      line = "  " + to_left(cut(queries[i], head), head);
      for (auto j = first; j < last; ++j)
        line += " " + to_right(hundredths(weights.at(static_cast<std::int64_t>(i * keys.size() + j))), cell);
      page += line + "\n";
    }
    if (last < keys.size()) page += "\n";
  }
  return page;
}

Exit inspect(InspectOptions const& options, std::ostream& out) {
  Subject const subject(options);
  auto const layers = subject.observed();
  std::vector<std::string> labels;
  for (auto const token : subject.tokens) labels.push_back(token_label(subject.tokenizer, token));

  auto const length = static_cast<std::int64_t>(subject.tokens.size());
  std::vector<NpyArray> arrays{NpyArray::of("tokens", Tensor::of(subject.tokens, {length})), NpyArray::of("labels", labels)};
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    arrays.push_back(NpyArray::of(fmt::format("layer{}.weights", layer), layers[layer]));
  fs::path const folder = fs::is_directory(subject.path) ? subject.path : subject.path.parent_path();
  fs::path const file = options.save.empty() ? folder / "attention.npz" : options.save;
  write_npz(file, arrays);
  if (options.quiet) return Exit::done;

  out << "weights in hundredths: a row a query, a column a key; · is exactly 0\n";
  for (std::size_t layer = 0; layer < layers.size() && out; ++layer) {
    auto const& weights = layers[layer];
    for (std::int64_t head = 0; head < weights.size(0); ++head) {
      Tensor const map = weights.rows(head, 1).viewed({weights.size(1), weights.size(2)});
      out << fmt::format("\nlayer {}, head {}\n", layer, head) << attention_table(map, labels, labels, options.width);
    }
  }
  out << fmt::format("\nsaved in {}\n", file.string());
  return Exit::done;
}

}  // namespace heed
