#include "experiments/data/examples/baselines.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "autograd/random.hpp"
#include "experiments/data/examples/answers.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"

namespace heed {
namespace {

/// How many different words of the one text the other has.
std::int64_t words_in_common(std::string_view a, std::string_view b) {
  auto const of_a = plain_words(a), of_b = plain_words(b);
  std::set<std::string> const first(of_a.begin(), of_a.end()), second(of_b.begin(), of_b.end());
  return std::ranges::count_if(first, [&](auto const& word) { return second.contains(word); });
}

/// How often examples have each label.
std::map<std::string, double> counts_of(std::vector<Example> const& examples) {
  std::map<std::string, double> counts;
  for (auto const& each : examples) ++counts[each.label];
  return counts;
}

/// Always the label that is most frequent among the held-out examples themselves; its loss is that of the frequencies in training, each
/// label counted once more.
Baseline majority(Examples const& examples, std::string name, std::size_t labels) {
  auto counts = counts_of(examples.training);
  auto const all = static_cast<double>(examples.training.size() + labels), share = 1 / static_cast<double>(examples.held_out.size());
  double accuracy = 0, loss = 0;
  for (auto const& [label, count] : counts_of(examples.held_out)) {
    accuracy = std::max(accuracy, share * count);
    loss -= share * count * std::log((counts[label] + 1) / all);
  }
  return {std::move(name), {{"accuracy", accuracy}, {"loss", loss}}};
}

using OptionScore = std::function<double(Example const&, std::string const& option)>;

/// The baseline that chooses the option with the highest score; of equals the first.
Baseline best_option(Examples const& examples, std::string name, OptionScore const& score) {
  double right = 0;
  for (auto const& each : examples.held_out) {
    auto const best = std::ranges::max_element(each.options, {}, [&](auto const& option) { return score(each, option); });
    if (std::to_string(best - each.options.begin()) == each.label) ++right;
  }
  return {std::move(name), {{"accuracy", right / static_cast<double>(examples.held_out.size())}}};
}

using Answering = std::function<std::string(Example const&, std::uint64_t number)>;

Baseline answered(Examples const& examples, std::string name, Answering const& answer) {
  double exact = 0, f1 = 0;
  auto const share = 1 / static_cast<double>(examples.held_out.size());
  for (std::size_t i = 0; i < examples.held_out.size(); ++i) {
    std::vector<std::string> right;
    for (auto const& each : examples.held_out[i].answers) right.push_back(each.text);
    auto const scores = answer_scores(answer(examples.held_out[i], i), right);
    exact += share * scores.exact;
    f1 += share * scores.f1;
  }
  return {std::move(name), {{"exact", exact}, {"f1", f1}}};
}

/// The sentences of a passage: up to a . ! or ? that a blank follows, or its end.
std::vector<std::string> sentences_of(std::string const& passage) {
  std::vector<std::string> sentences(1);
  for (std::size_t i = 0; i < passage.size(); ++i) {
    bool const ends = i > 0 && passage[i] == ' ' && std::string_view(".!?").find(passage[i - 1]) != std::string_view::npos;
    if (ends)
      sentences.emplace_back();
    else
      sentences.back() += passage[i];
  }
  return sentences;
}

std::vector<Baseline> of_spans(Examples const& examples) {
  std::vector<std::size_t> lengths;  // in words, of answers in training
  for (auto const& each : examples.training)
    if (!each.answers.empty()) lengths.push_back(words_of(each.answers.front().text).size());
  if (lengths.empty()) lengths.push_back(1);
  auto const sentence = [](Example const& example, std::uint64_t) {
    auto const all = sentences_of(example.second);
    return *std::ranges::max_element(all, {}, [&](auto const& each) { return words_in_common(each, example.first); });
  };
  auto const random = [&](Example const& example, std::uint64_t number) {
    auto const draws = Stream(0, "baselines.random_span").child(number);
    auto const words = words_of(example.second);
    auto const count = std::min(words.size(), lengths[draws.below(0, lengths.size())]);
    if (count == 0) return std::string();
    auto const first = draws.below(1, words.size() - count + 1);
    auto const *const begin = words[first].data(), *const end = words[first + count - 1].data() + words[first + count - 1].size();
    return std::string(begin, end);
  };
  std::vector<Baseline> all{answered(examples, "sentence with the most words in common", sentence),
                            answered(examples, "random span", random)};
  if (std::ranges::any_of(examples.held_out, [](auto const& each) { return each.answers.empty(); }))
    all.push_back(answered(examples, "no answer", [](Example const&, std::uint64_t) { return ""; }));
  return all;
}

std::vector<Baseline> of_options(Examples const& examples) {
  auto const length = [](Example const&, std::string const& option) { return static_cast<double>(option.size()); };
  return {majority(examples, "most frequent number", examples.training.front().options.size()),
          best_option(examples, "shortest option", [&](auto const& each, auto const& option) { return -length(each, option); }),
          best_option(examples, "longest option", length),
          best_option(examples, "option with the most words in common", [](auto const& each, auto const& option) {
            return static_cast<double>(words_in_common(each.first + " " + each.second, option));
          })};
}

}  // namespace

std::vector<Baseline> baselines(Examples const& examples) {
  if (examples.held_out.empty() || examples.training.empty()) return {};
  auto const& some = examples.training.front();
  if (some.span) return of_spans(examples);
  if (!some.options.empty()) return of_options(examples);
  return {majority(examples, "majority class", examples.classes.size()), bag_of_words(examples)};
}

}  // namespace heed
