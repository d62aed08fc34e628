#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/nearest.hpp"
#include "experiments/data/grammar.hpp"
#include "experiments/data/reading.hpp"

namespace heed {
namespace {

constexpr std::size_t max_nonterminals = 2'000, max_rules = 100'000;

bool is_nonterminal(std::string const& symbol) { return !symbol.empty() && symbol[0] >= 'A' && symbol[0] <= 'Z'; }

using FeatureAssignment = std::map<std::string, std::string>;  // feature → value

}  // namespace

/// From YAML to a Grammar: takes rules with features apart into plain rules and numbers the symbols.
struct GrammarReader {
  GrammarReader(std::string_view text, std::string const& path) {
    auto const yaml = parse_data(text, path);
    entries_of(yaml, "the grammar", {"about", "start", "features", "agreement", "rules"});
    for (auto const* key : {"start", "rules"})
      if (!yaml.entry(key)) refuse(yaml.location, fmt::format("'{}' is missing", key));
    if (auto const* entry = yaml.entry("features")) read_features(entry->value);

    // Left sides first, because a right side may come before what it refers to.
    auto const rules = entries_of(yaml.entry("rules")->value, "rules");
    for (auto const& rule : rules) define(rule);
    if (auto const* entry = yaml.entry("agreement")) read_agreement(entry->value);
    auto const& start = yaml.entry("start")->value;
    if (!is_nonterminal(text_value(start, "start")))
      refuse(start.location, fmt::format("start: {} is a word; it must be a nonterminal", shown(start.text)));
    make_first(symbol_number(start.text, start.location));
    for (auto const& rule : rules) read_alternatives(rule);
    number_words();
    sort_rules();
    if (!agreement.feature.empty()) find_agreement_values();
  }

  void read_features(Yaml const& node) {
    auto const entries = entries_of(node, "features");
    for (auto const& [feature, location, values] : entries) {
      if (values.kind != Yaml::NodeKind::list || values.items.empty()) refuse(values.location, "a feature needs a list of values");
      for (auto const& item : values.items) {
        auto const& value = text_value(item, "a feature's value");
        if (!all_values.insert(value).second) refuse(item.location, fmt::format("'{}' is a value already", value));
        features[feature].push_back(value);
      }
    }
    for (auto const& [feature, location, values] : node.entries)
      if (all_values.count(feature)) refuse(location, fmt::format("'{}' is both a feature and a value", feature));
  }

  /// "NP[number,man]" → NP, {number, man}. Every argument is a feature or a value of one.
  struct GrammarSymbol {
    std::string name;
    std::vector<std::string> arguments;
  };
  GrammarSymbol parse_symbol(std::string const& text, Location const& location) const {
    auto const bracket = text.find('[');
    if (bracket == std::string::npos) return {text, {}};
    if (text.back() != ']')
      refuse(location, fmt::format("{} has no closing bracket (write features without blanks: NP[number,class])", shown(text)));
    GrammarSymbol symbol{text.substr(0, bracket), {}};
    std::istringstream inside(text.substr(bracket + 1, text.size() - bracket - 2));
    for (std::string argument; std::getline(inside, argument, ',');) {
      symbol.arguments.push_back(argument);
      if (features.count(argument) || all_values.count(argument)) continue;
      std::vector<std::string> known(all_values.begin(), all_values.end());
      for (auto const& [name, values] : features) known.push_back(name);
      refuse(location,
             fmt::format("{} in {} is neither a feature nor a value of one{}", shown(argument), text, did_you_mean(argument, known)));
    }
    if (symbol.arguments.empty()) refuse(location, fmt::format("{} has no features between its brackets", shown(text)));
    return symbol;
  }

  void read_agreement(Yaml const& node) {
    auto const entries = entries_of(node, "agreement", {"feature", "from", "to"});
    for (auto const* key : {"feature", "from", "to"})
      if (!node.entry(key)) refuse(node.location, fmt::format("agreement: '{}' is missing", key));
    for (auto const& [key, location, value] : entries) {
      if (key == "feature") {
        agreement.feature = text_value(value, "a feature");
        if (!features.count(agreement.feature)) refuse(value.location, fmt::format("{} is not a feature", shown(agreement.feature)));
        continue;
      }
      auto const items = value.kind == Yaml::NodeKind::list ? value.items : std::vector{value};
      for (auto const& item : items) {
        auto const& name = text_value(item, "a nonterminal");
        auto const is_it = [&](std::string const& full) { return full.substr(0, full.find('[')) == name; };
        if (std::none_of(grammar.names_.begin(), grammar.names_.end(), is_it))
          refuse(item.location, fmt::format("{} has no rules", shown(name)));
        (key == "from" ? agreement.from : agreement.to).insert(name);
      }
    }
  }

  /// The symbols of a right side that agree: a `to` whose feature is left open, and the nearest before it with the same open feature.
  std::vector<std::pair<std::size_t, std::size_t>> agreements(std::vector<GrammarSymbol> const& right) const {
    auto const open = [&](GrammarSymbol const& symbol) {
      return std::ranges::find(symbol.arguments, agreement.feature) != symbol.arguments.end();
    };
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::optional<std::size_t> from;
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (!open(right[i])) continue;
      if (!agreement.to.count(right[i].name))
        from = i;
      else if (from)
        pairs.emplace_back(*from, i);
    }
    return pairs;
  }

  /// The value of the feature that each first word of a `to` symbol implies. A word can be the first of a symbol if one of the symbol's
  /// rules begins with the word, or with a symbol that can begin with it.
  void find_agreement_values() {
    auto const& values = features.at(agreement.feature);
    std::vector<std::set<Index>> values_of_word(grammar.words_.size());
    for (std::size_t symbol = 0; symbol < grammar.names_.size(); ++symbol) {
      auto const name = parse_symbol(grammar.names_[symbol], {});
      grammar.is_head_.push_back(agreement.from.count(name.name) > 0);
      if (!agreement.to.count(name.name)) continue;
      for (auto const& argument : name.arguments) {
        auto const value = std::find(values.begin(), values.end(), argument);
        if (value == values.end()) continue;
        for (auto const word : first_words(static_cast<std::int32_t>(symbol)))
          heed::at(values_of_word, word).insert(value - values.begin());
      }
    }
    for (auto const& of_word : values_of_word) grammar.agreement_values_.push_back(of_word.size() == 1 ? *of_word.begin() : -1);
  }

  std::set<std::int32_t> first_words(std::int32_t symbol) const {
    std::set<std::int32_t> words, seen{symbol};
    for (std::vector<std::int32_t> left{symbol}; !left.empty();) {
      auto const next = left.back();
      left.pop_back();
      for (auto const& rule : grammar.rules_) {
        if (rule.left != next) continue;
        if (rule.right[0] < 0)
          words.insert(~rule.right[0]);
        else if (seen.insert(rule.right[0]).second)
          left.push_back(rule.right[0]);
      }
    }
    return words;
  }

  static std::string plain_name(GrammarSymbol const& symbol, FeatureAssignment const& values) {
    if (symbol.arguments.empty()) return symbol.name;
    auto const value_of = [&](std::string const& argument) { return values.count(argument) ? values.at(argument) : argument; };
    return fmt::format("{}[{}]", symbol.name, fmt::join(mapped(symbol.arguments, value_of), ","));
  }

  /// All assignments of values to the features among the symbols' arguments; those that `given` has keep their values.
  std::vector<FeatureAssignment> assignments(std::vector<GrammarSymbol> const& symbols, Location const& location,
                                             FeatureAssignment const& given = {}) const {
    std::vector<FeatureAssignment> all{given};
    for (auto const& symbol : symbols)
      for (auto const& argument : symbol.arguments) {
        auto const feature = features.find(argument);
        if (feature == features.end() || all.front().count(argument)) continue;
        if (all.size() * feature->second.size() > max_rules)
          refuse(location, fmt::format("its features make more than {} rules", max_rules));
        std::vector<FeatureAssignment> longer;
        for (auto const& assignment : all)
          for (auto const& value : feature->second) {
            longer.push_back(assignment);
            longer.back()[argument] = value;
          }
        all = std::move(longer);
      }
    return all;
  }

  void define(Yaml::Entry const& rule) {
    if (!is_nonterminal(rule.key) || rule.key.find(' ') != std::string::npos)
      refuse(rule.location,
             fmt::format("{} cannot have rules: a nonterminal is one word that begins with a capital letter", shown(rule.key)));
    auto const left = parse_symbol(rule.key, rule.location);
    for (auto const& values : assignments({left}, rule.location)) {
      auto const name = plain_name(left, values);
      if (!numbers.emplace(name, static_cast<std::int32_t>(grammar.names_.size())).second)
        refuse(rule.location, name + " is defined twice");
      if (grammar.names_.size() == max_nonterminals) refuse(rule.location, fmt::format("more than {} nonterminals", max_nonterminals));
      grammar.names_.push_back(name);
      grammar.locations_.push_back(to_string(rule.location));
    }
  }

  /// Gives the start symbol number 0.
  void make_first(std::int32_t symbol) {
    auto const at = static_cast<std::size_t>(symbol);
    std::swap(numbers[grammar.names_[0]], numbers[grammar.names_[at]]);
    std::swap(grammar.names_[0], grammar.names_[at]);
    std::swap(grammar.locations_[0], grammar.locations_[at]);
  }

  void read_alternatives(Yaml::Entry const& rule) {
    if (rule.value.kind == Yaml::NodeKind::scalar) {
      add_alternative(rule, rule.value.text, rule.value.location, 1);
    } else if (rule.value.kind == Yaml::NodeKind::list && !rule.value.items.empty()) {
      for (auto const& item : rule.value.items) add_alternative(rule, text_value(item, "an alternative"), item.location, 1);
    } else {
      auto const weighted = entries_of(rule.value, rule.key);
      for (auto const& [text, location, weight] : weighted)
        add_alternative(rule, text, location, number_value(weight, "a weight", 1e-9, 1e9));
    }
  }

  void add_alternative(Yaml::Entry const& rule, std::string const& text, Location const& location, double weight) {
    std::vector<GrammarSymbol> right;
    std::istringstream stream(text);
    for (std::string symbol; stream >> symbol;)
      right.push_back(is_nonterminal(symbol) ? parse_symbol(symbol, location) : GrammarSymbol{symbol, {}});
    if (right.empty()) refuse(location, rule.key + " has an empty alternative");

    auto const left = parse_symbol(rule.key, rule.location);
    for (auto const& outer : assignments({left}, location)) {
      auto const number = numbers.at(plain_name(left, outer));
      auto const all = assignments(right, location, outer);
      for (auto const& values : all) {
        Grammar::GrammarRule plain{number, {}, weight * (1.0 / static_cast<double>(all.size())), agreements(right)};
        for (auto const& symbol : right) plain.right.push_back(symbol_number(plain_name(symbol, values), location));
        if (!written.insert({number, plain.right}).second)
          refuse(location, fmt::format("{} has the alternative {} twice", heed::at(grammar.names_, number), shown(text)));
        if (grammar.rules_.size() == max_rules) refuse(location, fmt::format("more than {} rules", max_rules));
        grammar.rules_.push_back(std::move(plain));
      }
    }
  }

  std::int32_t symbol_number(std::string const& name, Location const& location) {
    if (!is_nonterminal(name)) return ~word_numbers.emplace(name, static_cast<std::int32_t>(word_numbers.size())).first->second;
    auto const found = numbers.find(name);
    if (found == numbers.end()) refuse(location, fmt::format("{} has no rules{}", shown(name), did_you_mean(name, grammar.names_)));
    return found->second;
  }

  /// Numbers the words in sorted order, which does not depend on the order of the rules.
  void number_words() {
    std::vector<std::int32_t> sorted(word_numbers.size());
    for (auto const& [word, number] : word_numbers) {
      heed::at(sorted, number) = static_cast<std::int32_t>(grammar.words_.size());
      grammar.words_.push_back(word);
    }
    for (auto& rule : grammar.rules_)
      for (auto& symbol : rule.right)
        if (symbol < 0) symbol = ~heed::at(sorted, ~symbol);
  }

  /// Puts each nonterminal's rules together and makes its weights sum to one.
  void sort_rules() {
    auto& rules = grammar.rules_;
    std::stable_sort(rules.begin(), rules.end(), [](auto const& a, auto const& b) { return a.left < b.left; });
    std::vector<double> sums(grammar.names_.size());
    for (auto const& rule : rules) heed::at(sums, rule.left) += rule.probability;
    for (auto& rule : rules) rule.probability /= heed::at(sums, rule.left);
  }

  std::map<std::string, std::vector<std::string>> features;
  std::set<std::string> all_values;  // of all features
  struct {
    std::string feature;  // empty: there is no such section
    std::set<std::string> from, to;
  } agreement;
  std::map<std::string, std::int32_t> numbers, word_numbers;
  std::set<std::pair<std::int32_t, std::vector<std::int32_t>>> written;
  Grammar grammar;
};

Grammar Grammar::read(std::string_view text, std::string const& path) {
  Grammar grammar = std::move(GrammarReader(text, path).grammar);
  grammar.check_and_order();
  return grammar;
}

}  // namespace heed
