#include "experiments/data/examples/example.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utf8proc.h>

#include "autograd/error.hpp"
#include "autograd/random.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/number.hpp"
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

/// Rows, each with what was drawn for it, in the order of these numbers.
using DrawnRows = std::vector<std::pair<std::uint64_t, std::size_t>>;

/// The rows of each label, in the order of draw(row).
template <class Draw>
std::vector<DrawnRows> rows_by_label(std::vector<SourcedExample> const& all, Draw const& draw) {
  std::map<std::pair<std::string, bool>, DrawnRows> by_label;
  for (std::size_t i = 0; i < all.size(); ++i) by_label[{all[i].example.label, all[i].example.answers.empty()}].emplace_back(draw(i), i);
  for (auto& [label, rows] : by_label) std::ranges::sort(rows);
  return mapped(by_label, [](auto const& label) { return label.second; });
}

/// The rows of each label, in an order by their texts.
std::vector<DrawnRows> rows_by_label(std::vector<SourcedExample> const& all) {
  Stream const draws(0, "examples.stratified");
  return rows_by_label(all, [&](std::size_t i) { return draws.child(all[i].id).bits(0); });
}

/// The rows of each article, in an order by their names.
std::vector<std::vector<std::size_t>> rows_by_article(std::vector<SourcedExample> const& all) {
  std::map<std::pair<std::uint64_t, std::string>, std::vector<std::size_t>> articles;
  Stream const draws(0, "examples.split");
  for (std::size_t i = 0; i < all.size(); ++i) articles[{draws.child(all[i].article).bits(0), all[i].article}].push_back(i);
  return mapped(articles, [](auto const& article) { return article.second; });
}

std::string first_of(std::vector<std::string> const& list) {
  std::size_t const count = std::min<std::size_t>(list.size(), 24);
  return fmt::format("{}{}", fmt::join(std::span(list).first(count), ", "), list.size() > count ? ", …" : "");
}

void remark_on_classes(Examples const& examples, std::vector<std::string>& remarks) {
  struct ClassCount {
    Index training = 0, held_out = 0;
    std::string location = {};  ///< of a training example
  };
  std::map<std::string, ClassCount> counts;
  for (auto const& name : examples.classes) counts[name];
  for (Example const& each : examples.training) ++counts[each.label].training, counts[each.label].location = each.location;
  for (Example const& each : examples.held_out) ++counts[each.label].held_out;
  std::vector<std::string> all, single, unknown;
  std::map<std::string, std::vector<std::string>> by_form;
  for (auto const& [name, count] : counts) {
    all.push_back(fmt::format("{} {} + {}", shown(name), count.training, count.held_out));
    by_form[folded(name)].push_back(all.back());
    if (count.training == 1) single.push_back(fmt::format("{} ({})", shown(name), count.location));
    if (count.training == 0 && count.held_out > 0) unknown.push_back(shown(name));
  }
  remarks.push_back(fmt::format("{} classes, training + held-out examples: {}", all.size(), first_of(all)));
  for (auto const& [form, names] : by_form)
    if (names.size() > 1) remarks.push_back("classes that differ in blanks, case or form alone: " + first_of(names));
  if (!single.empty()) remarks.push_back("classes of one training example (a header? data.header: true): " + first_of(single));
  if (!unknown.empty()) remarks.push_back("classes of held-out examples alone: " + first_of(unknown));
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
    for (std::size_t k = 0; k < std::min(counts[i], labels[i].size()); ++k) rows.insert(labels[i][k].second);
  return take_rows(all, rows);
}

std::vector<SourcedExample> take_fold(std::vector<SourcedExample>& all, Index fold, Index folds, bool stratified) {
  std::set<std::size_t> rows;
  if (stratified) {
    Index number = 0;
    for (auto const& label : rows_by_label(all))
      for (auto const& [drawn, row] : label)
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
  auto passages = mapped(all, [](SourcedExample const& each) { return std::pair(each.article, each.example.second); });
  std::ranges::sort(passages);
  passages.erase(std::unique(passages.begin(), passages.end()), passages.end());
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

std::vector<SourcedExample> sample_of(std::vector<SourcedExample> const& all, Index size, std::uint64_t seed) {
  Stream const draws(seed, "examples.size");
  // The r-th of n of a label stands at (r + ½) / n: the first so many of all labels together have each in proportion.
  std::vector<std::tuple<double, std::uint64_t, std::size_t>> order;
  for (auto const& rows : rows_by_label(all, [&](std::size_t i) { return draws.bits(i); }))
    for (std::size_t r = 0; r < rows.size(); ++r)
      order.emplace_back((static_cast<double>(r) + 0.5) / static_cast<double>(rows.size()), rows[r].first, rows[r].second);
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

std::string folded(std::string_view name) {
  std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> const made(
      utf8proc_NFKC_Casefold(reinterpret_cast<utf8proc_uint8_t const*>(std::string(name).c_str())), &std::free);
  auto const words = made ? fmt::format("{}", fmt::join(words_of(reinterpret_cast<char const*>(made.get())), " ")) : std::string(name);
  std::string_view const digits = std::string_view(words).substr(words.starts_with('+') ? 1 : 0);
  auto const number = digits.size() < 16 ? parsed_number<double>(digits) : std::nullopt;
  return number ? fmt::format("{}", *number + 0.0) : words;
}

std::vector<std::string> remarks_on(Examples const& examples) {
  auto remarks = examples.remarks;
  if (!examples.training.front().span) remark_on_classes(examples, remarks);
  auto const texts = [](Example const& of) { return fmt::format("{}\n{}\n{}", of.first, of.second, fmt::join(of.options, "\n")); };
  std::unordered_set<std::string> known;
  for (Example const& each : examples.training) known.insert(texts(each));
  auto const twice = std::ranges::count_if(examples.held_out, [&](Example const& each) { return known.contains(texts(each)); });
  if (twice > 0)
    remarks.push_back(fmt::format("{} of {} held-out examples have the texts of a training example", twice, examples.held_out.size()));
  return remarks;
}

}  // namespace heed
