#include "experiments/metric/confusion.hpp"

#include <cmath>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {
namespace {

double divided(double a, double b) { return b == 0 ? 0 : a / b; }

/// How often each class is right, how often each is said, and how often both together.
struct Totals {
  explicit Totals(ConfusionMatrix const& counts) : right(counts.size()), said(counts.size()) {
    for (std::size_t r = 0; r < counts.size(); ++r)
      for (std::size_t s = 0; s < counts.size(); ++s) {
        auto const count = static_cast<double>(counts[r][s]);
        right[r] += count;
        said[s] += count;
        all += count;
        if (r == s) hits += count;
      }
  }
  std::vector<double> right, said;
  double all = 0, hits = 0;
};

}  // namespace

ConfusionMatrix confusion_matrix(std::vector<std::int64_t> const& right, std::vector<std::int64_t> const& said, std::size_t classes) {
  if (right.size() != said.size()) throw Error(fmt::format("confusion_matrix: {} labels, and {} were said", right.size(), said.size()));
  ConfusionMatrix counts(classes, std::vector<std::int64_t>(classes));
  for (std::size_t i = 0; i < right.size(); ++i) {
    for (auto const number : {right[i], said[i]})
      if (number < 0 || number >= static_cast<std::int64_t>(classes))
        throw Error(fmt::format("confusion_matrix: there is no class {} of {}", number, classes));
    ++counts[static_cast<std::size_t>(right[i])][static_cast<std::size_t>(said[i])];
  }
  return counts;
}

double accuracy(ConfusionMatrix const& counts) {
  Totals const totals(counts);
  return divided(totals.hits, totals.all);
}

double f1(ConfusionMatrix const& counts, std::size_t of) {
  Totals const totals(counts);
  return divided(2 * static_cast<double>(counts[of][of]), totals.right[of] + totals.said[of]);
}

double macro_f1(ConfusionMatrix const& counts) {
  Totals const totals(counts);
  double sum = 0, classes = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    if (totals.right[c] + totals.said[c] == 0) continue;
    sum += f1(counts, c);
    ++classes;
  }
  return divided(sum, classes);
}

double matthews_correlation(ConfusionMatrix const& counts) {
  Totals const totals(counts);
  double both = 0, right = 0, said = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    both += totals.right[c] * totals.said[c];
    right += totals.right[c] * totals.right[c];
    said += totals.said[c] * totals.said[c];
  }
  double const squared = totals.all * totals.all;
  return divided(totals.hits * totals.all - both, std::sqrt((squared - said) * (squared - right)));
}

}  // namespace heed
