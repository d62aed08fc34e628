#include "autograd/ops/attention_second.hpp"

#include <algorithm>
#include <vector>

#include "autograd/graph.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/dropout.hpp"
#include "autograd/kernels/strided.hpp"
#include "autograd/operations/elementwise.hpp"
#include "autograd/operations/product.hpp"
#include "autograd/ops/pair_sums.hpp"

namespace heed {

namespace {

/// Pairs of a block: about fifty arrays of so many numbers are held at once.
constexpr std::int64_t block_pairs = std::int64_t{1} << 16;

/// Some sequences, some queries of each, and the first keys: as many as one of them sees.
struct Cut {
  std::int64_t first_sequence, sequences, first_query, queries, keys;
};

/// The axes of an input that count queries and keys, −1: it has none. What has one has the sequences on axis 0.
struct Axes {
  int queries = -1, keys = -1;
};
Axes axes_of(std::size_t slot) {
  switch (slot) {
    case AttentionInputs::at_query:
    case AttentionInputs::at_near:
      return {.queries = 1};
    case AttentionInputs::at_key:
    case AttentionInputs::at_value:
      return {.keys = 1};
    case AttentionInputs::at_of_query:
    case AttentionInputs::at_of_row:
    case AttentionInputs::at_centres:
      return {.queries = 2};
    case AttentionInputs::at_of_key:
    case AttentionInputs::at_of_column:
      return {.keys = 2};
    default:
      return {};  // the sequences share it
  }
}

/// Where a cut's part of an input is.
struct Place {
  Shape extents;
  kernels::Layout layout;
};
Place place_of(std::size_t slot, Shape const& shape, Cut const& cut, std::int64_t all_queries) {
  Place place{shape, kernels::row_major(shape)};
  auto const take = [&](int axis, std::int64_t first, std::int64_t count) {
    if (axis < 0) return;
    place.layout.offset += first * place.layout.strides[static_cast<std::size_t>(axis)];
    place.extents.set(axis, count);
  };
  auto const [of_queries, of_keys] = axes_of(slot);
  if (of_queries >= 0 || of_keys >= 0) take(0, cut.first_sequence, cut.sequences);
  take(of_queries, cut.first_query, cut.queries);
  take(of_keys, 0, cut.keys);
  // The element j − i + n − 1, i and n being the block's.
  if (slot == AttentionInputs::at_relative) take(1, all_queries - cut.first_query - cut.queries, cut.queries + cut.keys - 1);
  return place;
}

Tensor part_of(Tensor const& x, Place const& place) {
  Tensor part(place.extents, x.dtype());
  kernels::copy_strided(place.extents, x, place.layout, part, kernels::row_major(place.extents));
  return part;
}
void add_part(Tensor& x, Place const& place, Tensor const& part) {
  kernels::copy_strided(place.extents, part_of(x, place) + part, kernels::row_major(place.extents), x, place.layout);
}

AttentionForm form_of(AttentionForm const& form, Cut const& cut, std::int64_t all_queries) {
  AttentionForm part = form;
  part.dropout.reset();
  auto& sees = part.visibility;
  sees.offset += cut.first_query;
  auto const of_cut = [&](Tensor const& lengths, std::int64_t less) {
    std::vector<std::int64_t> values;
    for (std::int64_t b = 0; lengths.defined() && b < cut.sequences; ++b)
      values.push_back(lengths.data<std::int64_t>()[static_cast<std::size_t>(cut.first_sequence + b)] - less);
    return lengths.defined() ? Tensor::of(values, {cut.sequences}) : Tensor();
  };
  sees.lengths = of_cut(sees.lengths, 0);
  sees.query_lengths = of_cut(sees.query_lengths, cut.first_query);
  if (!form.hard) return part;
  Tensor const& chosen = form.hard->chosen;
  part.hard->chosen = part_of(chosen, place_of(AttentionInputs::at_of_query, chosen.shape(), cut, all_queries));
  auto const& streams = form.hard->streams;
  auto const first = streams.begin() + (streams.empty() ? 0 : cut.first_sequence * form.heads);
  part.hard->streams.assign(first, streams.empty() ? first : first + cut.sequences * form.heads);
  return part;
}

/// What dropout multiplies the block's weights by: [sequences, H, queries, keys].
Tensor dropped(AttentionForm const& form, Cut const& cut, std::int64_t all_queries, std::int64_t all_keys, DType dtype) {
  Tensor factors = Tensor::ones({cut.sequences, form.heads, cut.queries, cut.keys}, dtype);
  kernels::with_real(dtype, [&](auto type) {
    auto* row = factors.mutable_data<decltype(type)>().data();
    for (std::int64_t part = cut.first_sequence * form.heads; part < (cut.first_sequence + cut.sequences) * form.heads; ++part) {
      for (std::int64_t i = cut.first_query; i < cut.first_query + cut.queries; ++i, row += cut.keys) {
        auto const element = static_cast<std::uint64_t>((part * all_queries + i) * all_keys);
        kernels::dropout_row(form.dropout->rate, form.dropout->stream, element, row, row, cut.keys);
      }
    }
  });
  return factors;
}

/// All blocks that see a key.
std::vector<Cut> cuts_of(AttentionForm const& form, std::int64_t batch, std::int64_t queries, std::int64_t keys) {
  std::int64_t const of_query = std::max<std::int64_t>(1, form.heads * keys);
  std::int64_t const rows =
      std::clamp<std::int64_t>(block_pairs / of_query, std::min<std::int64_t>(8, queries), std::max<std::int64_t>(1, queries));
  std::int64_t const sequences =
      rows < queries ? 1 : std::clamp<std::int64_t>(block_pairs / std::max<std::int64_t>(1, of_query * queries), 1, batch);
  std::vector<Cut> cuts;
  for (std::int64_t b = 0; b < batch; b += sequences) {
    for (std::int64_t i = 0; i < queries; i += rows) {
      Cut cut{b, std::min(sequences, batch - b), i, std::min(rows, queries - i), 0};
      for (std::int64_t s = 0; s < cut.sequences; ++s)
        for (std::int64_t r = 0; r < cut.queries; ++r) cut.keys = std::max(cut.keys, form.visibility.count(b + s, i + r, keys));
      if (cut.keys == 0) continue;
      if (form.hard) cut.keys = keys;  // what is chosen may be told from outside, where no query of the block sees it
      cuts.push_back(cut);
    }
  }
  return cuts;
}

Tensor context_of(AttentionForm const& form, AttentionInputs const& in, Tensor const& factors) {
  Tensor const sums = form.sum ? pair_sums(form.sum, in.query, in.key, in.weight, form.heads, form.groups()) : composed_sums(form, in);
  Tensor const weights = composed_weights(form, in, composed_scores(form, in, sums));
  return composed_result(form, in.value, weights, factors);
}

}  // namespace

AttentionSecond attention_second(AttentionForm const& form, AttentionInputs const& all, Tensor const& dy, AttentionInputs const& u) {
  std::int64_t const batch = all.query.size(0), queries = all.query.size(1), keys = all.key.size(1);
  AttentionInputs given = all, directions = u;
  AttentionSecond result;
  for (std::size_t slot = 0; slot < AttentionInputs::count; ++slot)
    if (given.all()[slot]->defined()) *result.inputs.all()[slot] = Tensor::zeros(given.all()[slot]->shape(), dy.dtype());
  result.dy = Tensor::zeros(dy.shape(), dy.dtype());

  for (Cut const& cut : cuts_of(form, batch, queries, keys)) {
    WithGrad const recorded;
    AttentionInputs part;
    std::vector<Tensor> leaves, seeds, differentiated;
    std::vector<std::size_t> slots;
    std::vector<Place> places;
    for (std::size_t slot = 0; slot < AttentionInputs::count; ++slot) {
      Tensor const& x = *given.all()[slot];
      if (!x.defined()) continue;
      places.push_back(place_of(slot, x.shape(), cut, queries));
      slots.push_back(slot);
      leaves.push_back(part_of(x.detach(), places.back()).set_requires_grad());
      *part.all()[slot] = leaves.back();
      Tensor const& direction = *directions.all()[slot];
      if (!direction.defined()) continue;
      differentiated.push_back(leaves.back());
      seeds.push_back(part_of(direction.detach(), places.back()));
    }
    Place const of_dy = place_of(AttentionInputs::at_query, dy.shape(), cut, queries);
    Tensor upstream = part_of(dy.detach(), of_dy);
    upstream.set_requires_grad();
    Tensor const factors = form.dropout ? dropped(form, cut, queries, keys, dy.dtype()) : Tensor();
    Tensor const context = context_of(form_of(form, cut, queries), part, factors);
    std::vector<Tensor> const gradients = grad({context}, differentiated, {upstream}, true);
    leaves.push_back(upstream);
    std::vector<Tensor> const second = grad(gradients, leaves, seeds);
    NoGrad const values;
    for (std::size_t i = 0; i < slots.size(); ++i) add_part(*result.inputs.all()[slots[i]], places[i], second[i]);
    add_part(result.dy, of_dy, second.back());
  }
  return result;
}

}  // namespace heed
