#include <algorithm>
#include <vector>

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/pairs.hpp"
#include "autograd/graph.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/kernels/strided.hpp"
#include "autograd/ops/elementwise.hpp"

namespace heed {

namespace {

/// Pairs per block: about fifty arrays of this size are held at once.
constexpr Index block_pairs = Index{1} << 16;

/// Where a part of an array is.
struct BlockView {
  Shape extents;
  kernels::Layout layout;
};
BlockView block_of(AttentionAxes const& axes, Shape const& shape, AttentionPart const& part, AttentionExtents const& whole) {
  BlockView block{shape, kernels::row_major(shape)};
  Index at = 0;
  for (AttentionAxis const axis : axes) {
    AxisRange const range = range_of(axis, shape[at], part, whole);
    block.layout.offset += range.first * heed::at(block.layout.strides, at);
    block.extents.set(at++, range.count);
  }
  return block;
}

Tensor part_of(Tensor const& x, BlockView const& block) {
  Tensor part(block.extents, x.dtype());
  kernels::copy_strided(block.extents, x, block.layout, part, kernels::row_major(block.extents));
  return part;
}
void add_part(Tensor& x, BlockView const& block, Tensor const& part) {
  kernels::copy_strided(block.extents, part_of(x, block) + part, kernels::row_major(block.extents), x, block.layout);
}

/// The part's sequences and heads: b H + h, in order.
std::vector<Index> heads_of(AttentionPart const& part, Index heads) {
  std::vector<Index> all;
  for (Index b = part.first_sequence; b < part.first_sequence + part.sequences; ++b)
    for (Index h = part.first_head; h < part.first_head + part.heads; ++h) all.push_back(b * heads + h);
  return all;
}

AttentionForm form_of(AttentionForm const& whole_form, AttentionPart const& part, AttentionExtents const& whole) {
  AttentionForm form = whole_form;
  form.heads = part.heads;
  if (form.key_heads > 0) form.key_heads = part.heads * whole.groups / whole.heads;
  form.dropout.reset();
  auto& sees = form.visibility;
  sees.offset += part.first_query - part.first_key;
  sees.first_key += part.first_key;
  auto const of_part = [&](Tensor const& lengths, Index less) {
    std::vector<Index> values;
    for (Index b = 0; lengths.defined() && b < part.sequences; ++b)
      values.push_back(heed::at(lengths.data<std::int64_t>(), part.first_sequence + b) - less);
    return lengths.defined() ? Tensor::of(values, {part.sequences}) : Tensor();
  };
  sees.lengths = of_part(sees.lengths, part.first_key);
  sees.query_lengths = of_part(sees.query_lengths, part.first_query);
  if (!form.hard) return form;
  Tensor const& chosen = whole_form.hard->chosen;
  AttentionAxes const by_query{AttentionAxis::sequences, AttentionAxis::heads, AttentionAxis::queries};
  form.hard->chosen = part_of(chosen, block_of(by_query, chosen.shape(), part, whole));
  for (std::int64_t& j : form.hard->chosen.mutable_data<std::int64_t>())  // beyond the part's keys: of a query that sees none
    j = std::clamp<Index>(j - part.first_key, 0, part.keys - 1);
  form.hard->streams.clear();
  for (Index const head : heads_of(part, whole.heads))
    if (!whole_form.hard->streams.empty()) form.hard->streams.push_back(heed::at(whole_form.hard->streams, head));
  return form;
}

/// Dropout's factors on the part's weights: [sequences, heads, queries, keys].
Tensor dropped(WeightDropout const& dropout, AttentionPart const& part, AttentionExtents const& whole, DType dtype) {
  Tensor factors = Tensor::ones({part.sequences, part.heads, part.queries, part.keys}, dtype);
  kernels::with_real(dtype, [&](auto type) {
    auto* row = factors.mutable_data<decltype(type)>().data();
    for (Index const head : heads_of(part, whole.heads)) {
      for (Index i = part.first_query; i < part.first_query + part.queries; ++i, row += part.keys) {
        auto const element = static_cast<std::uint64_t>((head * whole.queries + i) * whole.keys + part.first_key);
        kernels::dropout_row(dropout.rate, dropout.stream, element, row, row, part.keys);
      }
    }
  });
  return factors;
}

/// The keys that one of the part's queries sees or, as a given choice may, reads.
KeyRange keys_of(AttentionForm const& form, AttentionPart const& part, AttentionExtents const& whole) {
  KeyRange all{whole.keys, 0};
  auto const add = [&](Index first, Index last) { all = {std::min(all.first, first), std::max(all.last, last)}; };
  for (Index b = part.first_sequence; b < part.first_sequence + part.sequences; ++b) {
    for (Index i = part.first_query; i < part.first_query + part.queries; ++i) {
      KeyRange const seen = form.visibility.range(b, i, whole.keys);
      if (seen.first == seen.last) continue;
      add(seen.first, seen.last);
      for (Index h = part.first_head; form.hard && h < part.first_head + part.heads; ++h) {
        Index const chosen = heed::at(form.hard->chosen.data<std::int64_t>(), (b * whole.heads + h) * whole.queries + i);
        add(chosen, chosen + 1);
      }
    }
  }
  return all;
}

/// All blocks that see a key, preferring more queries to more groups to more sequences, with their keys. Of a sliding window a block has
/// about as many queries as one of them sees keys, so that it sees about half of its pairs.
std::vector<AttentionPart> blocks_of(AttentionForm const& form, AttentionExtents const& whole) {
  Index const share = whole.heads / whole.groups, widest = form.visibility.widest(whole.keys);
  Index const most = widest < whole.keys ? std::max<Index>(widest, 32) : whole.queries;
  Index const keys = widest < whole.keys ? std::min(whole.keys, widest + most) : whole.keys;
  auto const fitting = [](Index pairs, Index min_size, Index max_size) {
    return std::clamp<Index>(block_pairs / std::max<Index>(1, pairs), std::min(min_size, max_size), std::max<Index>(1, max_size));
  };
  bool const parted = form.scores_of_choice() == 0;  // else a query's results are not grouped by head
  Index const rows = std::min(most, fitting((parted ? share : whole.heads) * keys, 8, whole.queries));
  Index const groups = parted ? fitting(share * keys * rows, 1, whole.groups) : whole.groups;
  Index const sequences = groups < whole.groups ? 1 : fitting(whole.heads * keys * rows, 1, whole.batch);
  std::vector<AttentionPart> blocks;
  for (Index b = 0; b < whole.batch; b += sequences) {
    for (Index g = 0; g < whole.groups; g += groups) {
      for (Index i = 0; i < whole.queries; i += rows) {
        AttentionPart part{b, std::min(sequences, whole.batch - b), g * share, std::min(groups, whole.groups - g) * share,
                           i, std::min(rows, whole.queries - i),    0,         0};
        KeyRange const seen = keys_of(form, part, whole);
        part.first_key = seen.first, part.keys = seen.last - seen.first;
        if (part.keys > 0) blocks.push_back(part);
      }
    }
  }
  return blocks;
}

/// The reference of a part, with sums that hold nothing of size [n, m, d].
Tensor composed_part(AttentionForm const& form, AttentionInputs const& in, Tensor const& factors) {
  ComposedParts parts{.factors = factors};
  if (form.sum) parts.sums = pair_sums(form.sum, in.query, in.key, in.weight, form.heads, form.groups());
  return joined_read(composed_attention(form, in, parts).read);
}

}  // namespace

AttentionSecond attention_second(AttentionForm const& form, AttentionInputs const& in, Tensor const& dy, AttentionInputs const& u) {
  AttentionExtents const whole = extents_of(in, form.heads, form.groups());
  AttentionSecond result;
  each_array(
      [](AttentionArray const&, Tensor const& x, Tensor& sum) {
        if (x.defined()) sum = Tensor::zeros(x.shape(), x.dtype());
      },
      in, result.inputs);
  result.dy = Tensor::zeros(dy.shape(), dy.dtype());

  for (AttentionPart const& part : blocks_of(form, whole)) {
    WithGrad const recorded;
    AttentionInputs block;
    std::vector<Tensor> leaves, seeds, differentiated;
    auto const cut = [&](AttentionArray const& array, Tensor const& x, Tensor const& direction, Tensor& leaf) {
      if (!x.defined()) return;
      BlockView const view = block_of(array.axes, x.shape(), part, whole);
      leaf = part_of(x.detach(), view).set_requires_grad();
      leaves.push_back(leaf);
      if (!direction.defined()) return;
      differentiated.push_back(leaf);
      seeds.push_back(part_of(direction.detach(), view));
    };
    each_array(cut, in, u, block);
    if (block.centres.defined() && part.first_key > 0) block.centres = block.centres - static_cast<double>(part.first_key);
    BlockView const of_dy =
        block_of({AttentionAxis::sequences, AttentionAxis::queries, AttentionAxis::head_widths}, dy.shape(), part, whole);
    leaves.push_back(part_of(dy.detach(), of_dy).set_requires_grad());
    Tensor const factors = form.dropout ? dropped(*form.dropout, part, whole, dy.dtype()) : Tensor();
    std::vector<Tensor> gradients =
        grad({composed_part(form_of(form, part, whole), block, factors)}, differentiated, {leaves.back()}, true);
    std::vector<Tensor> const second = grad(std::move(gradients), leaves, seeds);
    NoGrad const values;
    std::size_t next = 0;
    auto const add = [&](AttentionArray const& array, Tensor& sum) {
      if (sum.defined()) add_part(sum, block_of(array.axes, sum.shape(), part, whole), second[next++]);
    };
    each_array(add, result.inputs);
    add_part(result.dy, of_dy, second.back());
  }
  return result;
}

}  // namespace heed
