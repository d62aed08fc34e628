#include "autograd/attention/second.hpp"

#include <algorithm>
#include <vector>

#include "autograd/attention/pair_sums.hpp"
#include "autograd/graph.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/dropout.hpp"
#include "autograd/kernels/strided.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"

namespace heed {

namespace {

/// Pairs of a block: about fifty arrays of so many numbers are held at once.
constexpr std::int64_t block_pairs = std::int64_t{1} << 16;

/// Some sequences, some groups of heads, some queries of each, and the first keys: as many as one of them sees.
struct AttentionBlock {
  std::int64_t first_sequence, sequences, first_group, groups, first_query, queries, keys;
};

/// The axes of an input that count heads (or their elements), queries and keys, −1: it has none. What has queries or keys has the sequences
/// on axis 0.
struct InputAxes {
  int heads = 0, queries = -1, keys = -1;
};
InputAxes axes_of(std::size_t slot) {
  switch (slot) {
    case AttentionInputs::at_query:
    case AttentionInputs::at_near:
      return {.heads = 2, .queries = 1};
    case AttentionInputs::at_key:
    case AttentionInputs::at_value:
      return {.heads = 2, .keys = 1};
    case AttentionInputs::at_of_query:
    case AttentionInputs::at_of_row:
    case AttentionInputs::at_centres:
      return {.heads = 1, .queries = 2};
    case AttentionInputs::at_of_key:
    case AttentionInputs::at_of_column:
      return {.heads = 1, .keys = 2};
    default:
      return {};  // the sequences share it
  }
}

/// What is cut.
struct Whole {
  std::int64_t batch, groups, queries, keys;
};

/// Where a cut's part of an input is.
struct BlockView {
  Shape extents;
  kernels::Layout layout;
};
BlockView place_of(std::size_t slot, Shape const& shape, AttentionBlock const& cut, Whole const& whole) {
  BlockView place{shape, kernels::row_major(shape)};
  auto const take = [&](int axis, std::int64_t first, std::int64_t count) {
    if (axis < 0) return;
    place.layout.offset += first * place.layout.strides[static_cast<std::size_t>(axis)];
    place.extents.set(axis, count);
  };
  auto const [of_heads, of_queries, of_keys] = axes_of(slot);
  if (of_queries >= 0 || of_keys >= 0) take(0, cut.first_sequence, cut.sequences);
  if (cut.groups < whole.groups) {
    std::int64_t const of_group = shape[of_heads] / whole.groups;
    take(of_heads, cut.first_group * of_group, cut.groups * of_group);
  }
  take(of_queries, cut.first_query, cut.queries);
  take(of_keys, 0, cut.keys);
  // The element j − i + n − 1, i and n being the block's.
  if (slot == AttentionInputs::at_relative) take(1, whole.queries - cut.first_query - cut.queries, cut.queries + cut.keys - 1);
  return place;
}

Tensor part_of(Tensor const& x, BlockView const& place) {
  Tensor part(place.extents, x.dtype());
  kernels::copy_strided(place.extents, x, place.layout, part, kernels::row_major(place.extents));
  return part;
}
void add_part(Tensor& x, BlockView const& place, Tensor const& part) {
  kernels::copy_strided(place.extents, part_of(x, place) + part, kernels::row_major(place.extents), x, place.layout);
}

/// The cut's sequences and heads: b H + h, in order.
std::vector<std::int64_t> heads_of(AttentionBlock const& cut, Whole const& whole, std::int64_t heads) {
  std::int64_t const of_group = heads / whole.groups;
  std::vector<std::int64_t> all;
  for (std::int64_t b = cut.first_sequence; b < cut.first_sequence + cut.sequences; ++b)
    for (std::int64_t h = cut.first_group * of_group; h < (cut.first_group + cut.groups) * of_group; ++h) all.push_back(b * heads + h);
  return all;
}

AttentionForm form_of(AttentionForm const& form, AttentionBlock const& cut, Whole const& whole) {
  AttentionForm part = form;
  part.heads = form.heads / whole.groups * cut.groups;
  if (form.key_heads > 0) part.key_heads = cut.groups;
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
  part.hard->chosen = part_of(chosen, place_of(AttentionInputs::at_of_query, chosen.shape(), cut, whole));
  part.hard->streams.clear();
  for (std::int64_t const head : heads_of(cut, whole, form.heads))
    if (!form.hard->streams.empty()) part.hard->streams.push_back(form.hard->streams[static_cast<std::size_t>(head)]);
  return part;
}

/// What dropout multiplies the block's weights by: [sequences, heads, queries, keys].
Tensor dropped(AttentionForm const& form, AttentionBlock const& cut, Whole const& whole, DType dtype) {
  std::vector<std::int64_t> const heads = heads_of(cut, whole, form.heads);
  Tensor factors = Tensor::ones({cut.sequences, static_cast<std::int64_t>(heads.size()) / cut.sequences, cut.queries, cut.keys}, dtype);
  kernels::with_real(dtype, [&](auto type) {
    auto* row = factors.mutable_data<decltype(type)>().data();
    for (std::int64_t const head : heads) {
      for (std::int64_t i = cut.first_query; i < cut.first_query + cut.queries; ++i, row += cut.keys) {
        auto const element = static_cast<std::uint64_t>((head * whole.queries + i) * whole.keys);
        kernels::dropout_row(form.dropout->rate, form.dropout->stream, element, row, row, cut.keys);
      }
    }
  });
  return factors;
}

/// All blocks that see a key: more queries before more groups before more sequences.
std::vector<AttentionBlock> cuts_of(AttentionForm const& form, Whole const& whole) {
  auto const& [batch, all_groups, queries, keys] = whole;
  auto const fitting = [](std::int64_t pairs, std::int64_t least, std::int64_t most) {
    return std::clamp<std::int64_t>(block_pairs / std::max<std::int64_t>(1, pairs), std::min(least, most), std::max<std::int64_t>(1, most));
  };
  bool const parted = form.scores_of_choice() == 0;  // else a query's result does not lie by heads
  std::int64_t const of_query = form.heads / all_groups * keys;
  std::int64_t const rows = fitting(parted ? of_query : form.heads * keys, 8, queries);
  std::int64_t const groups = !parted ? all_groups : rows < queries ? 1 : fitting(of_query * queries, 1, all_groups);
  std::int64_t const sequences = rows < queries || groups < all_groups ? 1 : fitting(form.heads * keys * queries, 1, batch);
  std::vector<AttentionBlock> cuts;
  for (std::int64_t b = 0; b < batch; b += sequences) {
    for (std::int64_t g = 0; g < all_groups; g += groups) {
      for (std::int64_t i = 0; i < queries; i += rows) {
        AttentionBlock cut{b, std::min(sequences, batch - b), g, std::min(groups, all_groups - g), i, std::min(rows, queries - i), 0};
        for (std::int64_t s = 0; s < cut.sequences; ++s)
          for (std::int64_t r = 0; r < cut.queries; ++r) cut.keys = std::max(cut.keys, form.visibility.count(b + s, i + r, keys));
        if (cut.keys == 0) continue;
        if (form.hard) cut.keys = keys;  // what is chosen may be told from outside, where no query of the block sees it
        cuts.push_back(cut);
      }
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
  Whole const whole{all.query.size(0), form.groups(), all.query.size(1), all.key.size(1)};
  AttentionInputs given = all, directions = u;
  AttentionSecond result;
  for (std::size_t slot = 0; slot < AttentionInputs::count; ++slot)
    if (given.all()[slot]->defined()) *result.inputs.all()[slot] = Tensor::zeros(given.all()[slot]->shape(), dy.dtype());
  result.dy = Tensor::zeros(dy.shape(), dy.dtype());

  for (AttentionBlock const& cut : cuts_of(form, whole)) {
    WithGrad const recorded;
    AttentionInputs part;
    std::vector<Tensor> leaves, seeds, differentiated;
    std::vector<std::size_t> slots;
    std::vector<BlockView> places;
    for (std::size_t slot = 0; slot < AttentionInputs::count; ++slot) {
      Tensor const& x = *given.all()[slot];
      if (!x.defined()) continue;
      places.push_back(place_of(slot, x.shape(), cut, whole));
      slots.push_back(slot);
      leaves.push_back(part_of(x.detach(), places.back()).set_requires_grad());
      *part.all()[slot] = leaves.back();
      Tensor const& direction = *directions.all()[slot];
      if (!direction.defined()) continue;
      differentiated.push_back(leaves.back());
      seeds.push_back(part_of(direction.detach(), places.back()));
    }
    BlockView const of_dy = place_of(AttentionInputs::at_query, dy.shape(), cut, whole);
    Tensor upstream = part_of(dy.detach(), of_dy);
    upstream.set_requires_grad();
    Tensor const factors = form.dropout ? dropped(form, cut, whole, dy.dtype()) : Tensor();
    std::vector<Tensor> gradients = grad({context_of(form_of(form, cut, whole), part, factors)}, differentiated, {upstream}, true);
    leaves.push_back(upstream);
    std::vector<Tensor> const second = grad(std::move(gradients), leaves, seeds);
    NoGrad const values;
    for (std::size_t i = 0; i < slots.size(); ++i) add_part(*result.inputs.all()[slots[i]], places[i], second[i]);
    add_part(result.dy, of_dy, second.back());
  }
  return result;
}

}  // namespace heed
