#include "experiments/metric/lengths.hpp"

#include <algorithm>
#include <set>
#include <span>

#include "autograd/error.hpp"

namespace heed {

namespace {

constexpr Index max_groups = 6;  // columns of a table that fits a terminal

struct RowOrigin {
  HeldOut const* from;
  std::size_t row;
  Index length;
};

/// The name of the part with a part's lengths; "": it has none.
std::string lengths_of(Batch const& batch, std::string const& part) {
  if (batch.has(part + "_lengths")) return part + "_lengths";
  static std::set<std::string> const of_inputs{"inputs", "targets", "next", "groups", "segments", "passage"};
  return of_inputs.contains(part) && batch.has("lengths") ? "lengths" : "";
}

Index length_of(RowOrigin const& origin, std::string const& part) {
  auto const name = lengths_of(origin.from->batch, part);
  Tensor const& whole = origin.from->batch[part];
  if (name.empty()) return whole.size(-1);
  Tensor const& lengths = origin.from->batch[name];
  auto const of_row = static_cast<std::size_t>(lengths.elements() / lengths.size(0));
  return std::ranges::max(lengths.data<std::int64_t>().subspan(origin.row * of_row, of_row));
}

Index filler(std::string const& part) { return part == "targets" || part == "next" || part == "groups" ? -1 : 0; }

/// A part of some rows. Those padded to one width keep it: a model may attend to a row's last positions. Others are as wide as the longest.
Tensor joined(std::span<RowOrigin const> origins, std::string const& part, bool one_width) {
  Tensor const& first = origins.front().from->batch[part];
  Shape shape = first.shape();
  shape.set(0, std::ssize(origins));
  if (!one_width) {
    Index width = 0;
    for (RowOrigin const& origin : origins) width = std::max(width, length_of(origin, part));
    shape.set(-1, width);
  }
  Tensor result = Tensor::full(shape, static_cast<double>(filler(part)), DType::int64);
  auto const values = result.mutable_data<std::int64_t>();
  auto const room = shape.rank() < 2 ? std::size_t{1} : static_cast<std::size_t>(result.size(-1));  // of a row's lists of tokens, each
  auto const lists = static_cast<std::size_t>(result.elements() / result.size(0)) / room;
  for (std::size_t i = 0; i < origins.size(); ++i) {
    Tensor const& from = origins[i].from->batch[part];
    auto const own = static_cast<std::size_t>(from.elements() / from.size(0)) / lists;
    for (std::size_t list = 0; list < lists; ++list) {
      auto const tokens = from.data<std::int64_t>().subspan((origins[i].row * lists + list) * own, std::min(own, room));
      std::ranges::copy(tokens, values.begin() + static_cast<std::ptrdiff_t>((i * lists + list) * room));
    }
  }
  return result;
}

HeldOut joined(std::span<RowOrigin const> origins, std::set<std::string> const& ragged) {
  HeldOut result;
  for (auto const& [part, tensor] : origins.front().from->batch.parts()) {
    if (tensor.dtype() != DType::int64) throw Error("evaluate: the part '" + part + "' of these data has no tokens");
    bool const everywhere =
        std::ranges::all_of(origins, [&, &name = part](RowOrigin const& origin) { return origin.from->batch.has(name); });
    if (everywhere) result.batch.set(part, joined(origins, part, !ragged.contains(part)));
  }
  for (RowOrigin const& origin : origins) {
    result.numbers.push_back(origin.from->numbers[origin.row]);
    if (!origin.from->links.empty()) result.links.push_back(origin.from->links[origin.row]);
  }
  return result;
}

/// Gives every batch the lengths that one of them has: a text's last window alone is shorter.
void complete_lengths(std::vector<HeldOut>& all) {
  if (std::ranges::none_of(all, [](HeldOut const& each) { return each.batch.has("lengths"); })) return;
  for (HeldOut& each : all)
    if (!each.batch.has("lengths"))
      each.batch.set("lengths", Tensor::full({each.batch.rows()}, static_cast<double>(each.batch["inputs"].size(1)), DType::int64));
}

/// The parts whose batches have different widths.
std::set<std::string> ragged_parts(std::vector<HeldOut> const& all) {
  std::set<std::string> ragged;
  for (HeldOut const& each : all)
    for (auto const& [part, tensor] : each.batch.parts())
      if (tensor.rank() >= 2 && tensor.size(-1) != all.front().batch[part].size(-1)) ragged.insert(part);
  return ragged;
}

/// The end of each group of rows that are sorted by length.
std::vector<std::size_t> ends_of(std::vector<RowOrigin> const& origins) {
  std::vector<std::size_t> ends;
  auto const all = std::ssize(origins);
  for (std::size_t i = 0; i < origins.size(); ++i) {
    bool const last = i + 1 == origins.size();
    auto const due = (std::ssize(ends) + 1) * all / max_groups;
    if (last || (std::ssize(ends) + 1 < max_groups && static_cast<Index>(i) + 1 >= due && origins[i].length != origins[i + 1].length))
      ends.push_back(i + 1);
  }
  return ends;
}

std::vector<std::vector<HeldOut>> folded(std::span<RowOrigin const> origins, Index at_once, std::set<std::string> const& ragged) {
  Index const rows = std::ssize(origins), folds = std::min(rows, max_folds);
  std::vector<std::vector<HeldOut>> result(static_cast<std::size_t>(folds));
  for (Index fold = 0; fold < folds; ++fold) {
    auto const end = (fold + 1) * rows / folds;
    for (auto first = fold * rows / folds; first < end; first += at_once) {
      std::span const batch(origins.begin() + first, origins.begin() + std::min(end, first + at_once));
      at(result, fold).push_back(joined(batch, ragged));
    }
  }
  return result;
}

}  // namespace

ByLength by_length(Dataset const& data, Index context, Index read, Index at_once) {
  std::vector<HeldOut> all;
  for (Index i = 0; i < data.validation_batches(read, context); ++i) all.push_back(held_out(data, i, read, context));
  if (all.empty()) return {};
  complete_lengths(all);
  std::string const measured = all.front().batch.has("source") ? "source" : "inputs";
  std::vector<RowOrigin> origins;
  std::set<Index> lengths;
  for (HeldOut const& each : all) {
    for (std::size_t row = 0; row < each.numbers.size(); ++row) {
      origins.push_back({&each, row, 0});
      lengths.insert(origins.back().length = length_of(origins.back(), measured));
    }
  }
  // Of two lengths one is a text's last window.
  bool const differ = lengths.size() > 2;
  if (differ) std::ranges::stable_sort(origins, {}, &RowOrigin::length);
  auto const ragged = ragged_parts(all);
  ByLength result{differ ? (measured == "source" ? "source" : "row") : "", std::ssize(origins), {}};
  std::size_t first = 0;
  for (auto const end : differ ? ends_of(origins) : std::vector{origins.size()}) {
    std::span<RowOrigin const> const of_group(origins.data() + first, end - first);
    auto const [shortest, longest] = std::ranges::minmax(of_group, {}, &RowOrigin::length);
    BatchedLengthGroup group{{shortest.length, longest.length, std::ssize(of_group)}, folded(of_group, at_once, ragged)};
    for (RowOrigin const& each : of_group) group.mean += to_double(each.length) / to_double(group.rows);
    first = end;
    result.groups.push_back(std::move(group));
  }
  return result;
}

}  // namespace heed
