#include "experiments/data/tokenizer.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

// By name, because the order in which files register themselves is not defined.
std::map<std::string, TokenizerKind>& kinds() {
  static std::map<std::string, TokenizerKind> all;
  return all;
}

TokenizerKind const& chosen(Choice const& choice) {
  auto const found = kinds().find(choice.kind);
  if (found == kinds().end() || !found->second.make || !choice.settings)
    throw Error(fmt::format("tokenizer.kind: '{}' is not a kind of tokenizer", choice.kind));
  return found->second;
}

}  // namespace

std::string Tokenizer::decode(std::vector<std::int64_t> const& tokens) const {
  for (auto const token : tokens)
    if (token < 0 || token >= vocabulary()) throw Error(fmt::format("token {} is outside the vocabulary of {}", token, vocabulary()));
  return text_of(tokens);
}

std::optional<std::string> Tokenizer::mark(std::int64_t) const { return std::nullopt; }

std::int64_t Tokenizer::unknown_words(std::string_view) const { return 0; }

bool register_tokenizer(TokenizerKind kind) {
  auto const name = kind.name;
  if (!kinds().emplace(name, std::move(kind)).second) throw Error("tokenizer " + name + " is registered twice");
  return true;
}

Choice tokenizer_choice(std::string const& kind) {
  Choice choice;
  for (auto const& [name, each] : kinds())
    if (each.settings) choice.options.push_back({name, each.help, each.settings});
  choice.kind = kind;
  choice.settings = kinds().at(kind).settings();
  return choice;
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
    auto const found = kinds().find(kind);
    if (found == kinds().end() || !found->second.restore) throw Error(fmt::format("there is no kind '{}'", kind));
    return found->second.restore(saved);
  } catch (nlohmann::json::exception const& error) {
    throw Error(fmt::format("not a tokenizer: {}", error.what()));
  } catch (Error const& error) {
    throw Error(fmt::format("not a tokenizer: {}", error.what()));
  }
}

}  // namespace heed
