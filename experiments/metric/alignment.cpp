#include "experiments/metric/alignment.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {

AlignmentCounts& AlignmentCounts::operator+=(AlignmentCounts const& other) {
  found += other.found;
  sure += other.sure;
  found_sure += other.found_sure;
  found_possible += other.found_possible;
  return *this;
}

AlignmentCounts alignment_counts(std::vector<Link> const& found, std::vector<Link> const& known) {
  using Places = std::set<std::pair<std::int64_t, std::int64_t>>;
  Places all, sure, possible;
  for (auto const& link : found) all.emplace(link.target, link.source);
  for (auto const& link : known) {
    possible.emplace(link.target, link.source);
    if (link.sure) sure.emplace(link.target, link.source);
  }
  auto const within = [&](Places const& known_places) {
    return std::ranges::count_if(all, [&](auto const& link) { return known_places.contains(link); });
  };
  return {std::ssize(all), std::ssize(sure), within(sure), within(possible)};
}

double alignment_error_rate(AlignmentCounts const& counts) {
  if (counts.found + counts.sure == 0) throw Error("alignment error rate: there are no links");
  return 1 - static_cast<double>(counts.found_sure + counts.found_possible) / static_cast<double>(counts.found + counts.sure);
}

std::vector<Link> hard_links(Tensor const& weights, std::int64_t sources, std::vector<Link> const& known) {
  if (weights.rank() != 2 || sources < 1 || sources > weights.size(1))
    throw Error(
        fmt::format("hard alignment: weights {} of {} sources; wants [targets, sources or more]", to_string(weights.shape()), sources));
  std::set<std::int64_t> targets;
  for (auto const& link : known) targets.insert(link.target);
  std::vector<Link> links;
  for (auto const target : targets) {
    if (target < 0 || target >= weights.size(0))
      throw Error(fmt::format("hard alignment: weights {} have no target {}", to_string(weights.shape()), target));
    auto row = weights.rows(target, 1).to_vector();
    row.resize(static_cast<std::size_t>(sources));
    if (std::ranges::any_of(row, [](double weight) { return std::isnan(weight); }))
      throw Error(fmt::format("hard alignment: a weight of target {} is no number", target));
    links.push_back({target, std::ranges::max_element(row) - row.begin()});
  }
  return links;
}

std::vector<Link> links_to_fields(std::vector<Link> const& links, PictureFields const& picture) {
  std::int64_t const rows = picture.fields / picture.across;
  std::map<std::pair<std::int64_t, std::int64_t>, bool> sure;
  for (auto const& link : links) {
    std::int64_t const y = link.source / picture.width, x = link.source % picture.width;
    std::int64_t const field = y * rows / picture.height * picture.across + x * picture.across / picture.width;
    sure[{link.target, field}] |= link.sure;
  }
  std::vector<Link> result;
  for (auto const& [places, is_sure] : sure) result.push_back({places.first, places.second, is_sure});
  return result;
}

}  // namespace heed
