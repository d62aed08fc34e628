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

std::vector<SourcedExample> take_articles(std::vector<SourcedExample>& all, double share) {
  std::map<std::string, std::size_t> sizes;
  for (auto const& each : all) ++sizes[each.article];
  std::vector<std::pair<std::uint64_t, std::string>> order;
  Stream const draws(0, "examples.split");
  for (auto const& [article, size] : sizes) order.emplace_back(draws.child(article).bits(0), article);
  std::ranges::sort(order);
  auto const wanted = static_cast<std::size_t>(std::llround(share * static_cast<double>(all.size())));
  std::set<std::string> taken;
  std::size_t held = 0;
  for (std::size_t i = 0; i < order.size() && held < wanted; ++i) {
    taken.insert(order[i].second);
    held += sizes[order[i].second];
  }
  auto const rest = std::stable_partition(all.begin(), all.end(), [&](auto const& each) { return !taken.contains(each.article); });
  std::vector<SourcedExample> part(std::make_move_iterator(rest), std::make_move_iterator(all.end()));
  all.erase(rest, all.end());
  return part;
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
  std::vector<std::size_t> chosen;
  for (auto const& [place, bits, index] : order) chosen.push_back(index);
  std::ranges::sort(chosen);
  std::vector<Example> sample;
  for (auto const index : chosen) sample.push_back(all[index]);
  return sample;
}

std::vector<std::size_t> character_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < text.size(); decode_utf8(text, i)) starts.push_back(i);
  starts.push_back(text.size());
  return starts;
}

}  // namespace heed
