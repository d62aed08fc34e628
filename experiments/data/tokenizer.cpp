#include "experiments/data/tokenizer.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

TokenizerKind const& chosen(Choice const& choice) { return Registry<TokenizerKind>::at(choice.kind, "tokenizer.kind: there is no"); }

}  // namespace

std::string Tokenizer::decode(std::vector<Index> const& tokens) const {
  for (auto const token : tokens)
    if (token < 0 || token >= vocabulary()) throw Error(fmt::format("token {} is outside the vocabulary of {}", token, vocabulary()));
  return text_of(tokens);
}

std::vector<std::size_t> Tokenizer::starts(std::string_view text, std::vector<std::int32_t> const& tokens) const {
  constexpr std::string_view blank = " \t\n\v\f\r";
  std::vector<std::size_t> starts;
  std::size_t at = 0;
  for (std::int32_t const token : tokens) {
    auto piece = mark(token) ? std::string() : decode({token});
    if (text.compare(at, piece.size(), piece) != 0) {  // blanks that are no tokens, or one that was put in front of the text
      at = std::min(text.find_first_not_of(blank, at), text.size());
      piece.erase(0, piece.find_first_not_of(blank));
    }
    starts.push_back(at);
    at = std::min(at + piece.size(), text.size());
  }
  starts.push_back(text.size());
  return starts;
}

Choice tokenizer_choice(std::string const& kind) {
  return choice_of<TokenizerKind>(kind, [](TokenizerKind const& each) { return each.settings != nullptr; });
}

std::shared_ptr<Tokenizer const> make_tokenizer(Choice const& choice, std::string_view training, DataContext const& context,
                                                std::string_view all) {
  return chosen(choice).make(*choice.settings, {training, all.empty() ? training : all, context});
}

bool cuts_characters(Choice const& choice) { return chosen(choice).cuts_characters; }

std::shared_ptr<Tokenizer const> restore_tokenizer(std::string const& json) {
  try {
    auto const saved = parse_json<nlohmann::json>(json, "the text");
    auto const& kind = saved.at("kind").get_ref<std::string const&>();
    auto const& restore = Registry<TokenizerKind>::at(kind, "there is no kind").restore;
    if (!restore) throw Error(fmt::format("none is kept of kind '{}'", kind));
    return restore(saved);
  } catch (nlohmann::json::exception const& error) {
    throw Error(fmt::format("not a tokenizer: {}", error.what()));
  } catch (Error const& error) {
    throw Error(fmt::format("not a tokenizer: {}", error.what()));
  }
}

}  // namespace heed
