#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "experiments/data/examples/baselines.hpp"
#include "experiments/data/examples/logistic.hpp"

namespace heed {

std::vector<std::string> plain_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (char const c : text) {
    auto const byte = static_cast<unsigned char>(c);
    bool const upper = c >= 'A' && c <= 'Z';
    bool const of_word = byte >= 0x80 || upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '\'';
    bool const blank = c == ' ' || (c >= '\t' && c <= '\r');
    if (!blank && !(of_word && inside)) words.emplace_back();
    if (!blank) words.back() += upper ? static_cast<char>(c - 'A' + 'a') : c;
    inside = of_word;
  }
  return words;
}

namespace {

/// The share of the words of one text that another has too.
double covered(std::vector<std::string> const& words, std::vector<std::string> const& by) {
  std::set<std::string> const others(by.begin(), by.end());
  auto const found = std::ranges::count_if(words, [&](auto const& word) { return others.contains(word); });
  return words.empty() ? 0 : static_cast<double>(found) / static_cast<double>(words.size());
}

using NamedFeatures = std::vector<std::pair<std::string, double>>;

/// The words and the pairs of neighbouring words of an example, and what its texts have in common.
NamedFeatures features_of(Example const& example, bool symmetric) {
  auto const first = plain_words(example.first), second = plain_words(example.second);
  std::set<std::string> names;
  for (auto const& [words, text] : {std::pair(&first, ""), std::pair(&second, symmetric ? "" : "2:")})
    for (std::size_t i = 0; i < words->size(); ++i) {
      names.insert(text + (*words)[i]);
      if (i > 0) names.insert(text + (*words)[i - 1] + " " + (*words)[i]);
    }
  NamedFeatures features;
  double const value = 1 / std::sqrt(static_cast<double>(std::max<std::size_t>(1, names.size())));
  for (auto const& name : names) features.emplace_back(name, value);
  if (second.empty()) return features;
  double const of_first = covered(first, second), of_second = covered(second, first);
  features.emplace_back("\nfirst", symmetric ? std::min(of_first, of_second) : of_first);
  features.emplace_back("\nsecond", symmetric ? std::max(of_first, of_second) : of_second);
  return features;
}

/// Numbers of the features that more than one training example has.
class Bag {
 public:
  explicit Bag(std::vector<NamedFeatures> const& training) {
    std::unordered_map<std::string, int> counts;
    for (auto const& features : training)
      for (auto const& [name, value] : features)
        if (++counts[name] == 2) numbers_.emplace(name, static_cast<std::int32_t>(numbers_.size()));
  }
  std::int64_t features() const { return std::ssize(numbers_); }
  SparseRow row_of(NamedFeatures const& features) const {
    SparseRow row;
    for (auto const& [name, value] : features)
      if (auto const found = numbers_.find(name); found != numbers_.end()) row.emplace_back(found->second, value);
    return row;
  }

 private:
  std::unordered_map<std::string, std::int32_t> numbers_;
};

/// Rows and their labels.
struct LabelledRows {
  std::vector<SparseRow> rows;
  std::vector<std::int64_t> labels;

  LogisticRegression fitted(std::int64_t features, std::int64_t classes, double l2) const {
    return LogisticRegression::fitted(rows, labels, features, classes, l2);
  }
};

/// The penalty with which the model of four fifths of the rows has the least loss on the others.
double best_penalty(LabelledRows const& all, std::int64_t features, std::int64_t classes) {
  LabelledRows parts[2];
  for (std::size_t i = 0; i < all.rows.size(); ++i) {
    LabelledRows& part = parts[i % 5 == 4 ? 1 : 0];
    part.rows.push_back(all.rows[i]);
    part.labels.push_back(all.labels[i]);
  }
  double best = 1e-3, least = INFINITY;
  if (parts[1].rows.empty()) return best;
  for (double const l2 : {1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5}) {
    auto const loss = scores_of(parts[0].fitted(features, classes, l2), parts[1].rows, parts[1].labels).loss;
    if (loss < least) least = loss, best = l2;
  }
  return best;
}

}  // namespace

Baseline bag_of_words(Examples const& examples) {
  std::map<std::string, std::int64_t> numbers;
  for (auto const& name : examples.classes) numbers.emplace(name, std::ssize(numbers));
  std::vector<NamedFeatures> training;
  for (auto const& each : examples.training) training.push_back(features_of(each, examples.symmetric));
  Bag const bag(training);
  LabelledRows train, held_out;
  for (std::size_t i = 0; i < training.size(); ++i) {
    train.rows.push_back(bag.row_of(training[i]));
    train.labels.push_back(numbers.at(examples.training[i].label));
  }
  for (auto const& each : examples.held_out) {
    held_out.rows.push_back(bag.row_of(features_of(each, examples.symmetric)));
    held_out.labels.push_back(numbers.at(each.label));
  }
  auto const classes = std::ssize(examples.classes);
  auto const model = train.fitted(bag.features(), classes, best_penalty(train, bag.features(), classes));
  auto const [accuracy, loss] = scores_of(model, held_out.rows, held_out.labels);
  return {"bag of words and bigrams", {{"accuracy", accuracy}, {"loss", loss}}};
}

}  // namespace heed
