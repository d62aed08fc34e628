#include "experiments/data/examples/sourced_examples.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "autograd/error.hpp"
#include "autograd/random.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

/// Moves the marked rows out of `all`; both keep their order.
std::vector<SourcedExample> take_rows(std::vector<SourcedExample>& all, std::set<std::size_t> const& rows) {
  std::vector<SourcedExample> part, rest;
  for (std::size_t i = 0; i < all.size(); ++i) (rows.contains(i) ? part : rest).push_back(std::move(all[i]));
  all = std::move(rest);
  return part;
}

/// The rows of each label, in an order by their texts.
std::vector<std::vector<std::size_t>> rows_by_label(std::vector<SourcedExample> const& all) {
  Stream const draws(0, "examples.stratified");
  std::map<std::pair<std::string, bool>, std::vector<std::pair<std::uint64_t, std::size_t>>> by_label;
  for (std::size_t i = 0; i < all.size(); ++i)
    by_label[{all[i].example.label, all[i].example.answers.empty()}].emplace_back(draws.child(all[i].id).bits(0), i);
  std::vector<std::vector<std::size_t>> result;
  for (auto& [label, members] : by_label) {
    std::ranges::sort(members);
    result.emplace_back();
    for (auto const& [bits, row] : members) result.back().push_back(row);
  }
  return result;
}

/// The rows of each article, in an order by their names.
std::vector<std::vector<std::size_t>> rows_by_article(std::vector<SourcedExample> const& all) {
  std::map<std::pair<std::uint64_t, std::string>, std::vector<std::size_t>> articles;
  Stream const draws(0, "examples.split");
  for (std::size_t i = 0; i < all.size(); ++i) articles[{draws.child(all[i].article).bits(0), all[i].article}].push_back(i);
  return mapped(articles, [](auto const& article) { return article.second; });
}

}  // namespace

std::vector<SourcedExample> take_stratified(std::vector<SourcedExample>& all, double share) {
  auto const labels = rows_by_label(all);
  auto left = std::llround(share * static_cast<double>(all.size()));
  std::vector<std::pair<double, std::size_t>> remainders;
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    double const exact = share * static_cast<double>(labels[i].size());
    counts.push_back(static_cast<std::size_t>(exact));
    left -= static_cast<long long>(counts.back());
    remainders.emplace_back(static_cast<double>(counts.back()) - exact, i);
  }
  std::ranges::sort(remainders);  // the largest first: they are negative
  for (std::size_t i = 0; left > 0 && i < remainders.size(); ++i, --left) ++counts[remainders[i].second];
  std::set<std::size_t> rows;
  for (std::size_t i = 0; i < labels.size(); ++i)
    rows.insert(labels[i].begin(), labels[i].begin() + static_cast<std::ptrdiff_t>(std::min(counts[i], labels[i].size())));
  return take_rows(all, rows);
}

std::vector<SourcedExample> take_fold(std::vector<SourcedExample>& all, Index fold, Index folds, bool stratified) {
  std::set<std::size_t> rows;
  if (stratified) {
    Index number = 0;
    for (auto const& label : rows_by_label(all))
      for (auto const row : label)
        if (number++ % folds == fold) rows.insert(row);
    return take_rows(all, rows);
  }
  std::vector<std::size_t> sizes(static_cast<std::size_t>(folds));
  for (auto const& members : rows_by_article(all)) {
    auto const least = std::ranges::min_element(sizes);
    if (least - sizes.begin() == fold) rows.insert(members.begin(), members.end());
    *least += members.size();
  }
  return take_rows(all, rows);
}

std::vector<SourcedExample> take_articles(std::vector<SourcedExample>& all, double share) {
  auto const wanted = static_cast<std::size_t>(std::llround(share * static_cast<double>(all.size())));
  std::set<std::size_t> rows;
  for (auto const& members : rows_by_article(all))
    if (rows.size() < wanted) rows.insert(members.begin(), members.end());
  return take_rows(all, rows);
}

void make_unanswerable(std::vector<SourcedExample>& all, double share) {
  std::set<std::pair<std::string, std::string>> const distinct = [&] {
    std::set<std::pair<std::string, std::string>> passages;
    for (auto const& each : all) passages.emplace(each.article, each.example.second);
    return passages;
  }();
  std::vector<std::pair<std::string, std::string>> const passages(distinct.begin(), distinct.end());
  if (!all.empty() && passages.front().first == passages.back().first)
    throw Error("data.unanswerable: all passages of a part are from one article, but a question needs one from another");
  Stream const stream(0, "examples.unanswerable");
  for (auto& [example, article, id] : all) {
    auto const draws = stream.child(id);
    if (example.answers.empty() || draws.uniform(0) >= share) continue;
    std::uint64_t attempt = 1;
    auto const drawn = [&]() -> auto const& { return passages[draws.below(attempt, passages.size())]; };
    while (drawn().first == article) ++attempt;
    example.second = drawn().second;
    example.answers.clear();
  }
}

std::vector<Example> sample_of(std::vector<Example> const& all, Index size, std::uint64_t seed) {
  Stream const draws(seed, "examples.size");
  std::map<std::pair<std::string, bool>, std::vector<std::pair<std::uint64_t, std::size_t>>> by_label;
  for (std::size_t i = 0; i < all.size(); ++i) by_label[{all[i].label, all[i].answers.empty()}].emplace_back(draws.bits(i), i);
  // The r-th of n of a label stands at (r + ½) / n: the first so many of all labels together have each in proportion.
  std::vector<std::tuple<double, std::uint64_t, std::size_t>> order;
  for (auto& [label, members] : by_label) {
    std::ranges::sort(members);
    for (std::size_t r = 0; r < members.size(); ++r)
      order.emplace_back((static_cast<double>(r) + 0.5) / static_cast<double>(members.size()), members[r].first, members[r].second);
  }
  std::ranges::sort(order);
  order.resize(static_cast<std::size_t>(size));
  auto chosen = mapped(order, [](auto const& each) { return std::get<2>(each); });
  std::ranges::sort(chosen);
  return mapped(chosen, [&](std::size_t index) { return all[index]; });
}

std::vector<std::size_t> character_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < text.size(); decode_utf8(text, i)) starts.push_back(i);
  starts.push_back(text.size());
  return starts;
}

}  // namespace heed
