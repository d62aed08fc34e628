// Which keys a query sees, and which of them are in its window.

#include <algorithm>
#include <vector>

#include "autograd/attention/kernel.hpp"
#include "autograd/kernels/dispatch.hpp"

namespace heed {

KeyRange Visibility::range(Index b, Index i, Index keys) const {
  auto const of = [b](Tensor const& all) { return heed::at(all.data<std::int64_t>(), b); };
  if (query_lengths.defined() && i >= of(query_lengths)) return {0, 0};
  Index const length = lengths.defined() ? of(lengths) : keys, position = offset + i;
  Index first = 0, last = causal ? std::min(length, position + 1) : length;
  if (sees > 0) {
    first = std::max<Index>(position + 1 - sees, 0);
    last = std::min(last, position + std::min(sees, position + keys));  // the inner one: no overflow
  }
  last = std::min(last, keys);
  return first < last ? KeyRange{first, last} : KeyRange{0, 0};
}

Index Visibility::count(Index b, Index i, Index keys) const {
  KeyRange const seen = range(b, i, keys);
  return seen.last - seen.first;
}

Index Visibility::widest(Index keys) const {
  Index const behind = sees > 0 ? std::min(sees, keys) : keys;
  return causal ? behind : std::min(keys, 2 * behind);
}

Index Visibility::sequences() const {
  Tensor const& given = lengths.defined() ? lengths : query_lengths;
  return given.defined() ? given.elements() : 1;
}

Tensor Visibility::mask(Index queries, Index keys, DType dtype) const {
  Index const sequences = this->sequences();
  Tensor mask = Tensor::zeros({sequences, 1, queries, keys}, dtype);
  kernels::with_real(dtype, [&](auto type) {
    auto* row = mask.mutable_data<decltype(type)>().data();
    for (Index b = 0; b < sequences; ++b) {
      for (Index i = 0; i < queries; ++i, row += keys) {
        KeyRange const seen = range(b, i, keys);
        std::fill(row + seen.first, row + seen.last, decltype(type)(1));
      }
    }
  });
  return mask;
}

Tensor Visibility::counts(Index queries, Index keys, DType dtype) const {
  Index const sequences = this->sequences();
  std::vector<double> values;
  for (Index b = 0; b < sequences; ++b) {
    for (Index i = 0; i < queries; ++i) values.push_back(static_cast<double>(count(b, i, keys)));
  }
  return Tensor::of(values, {sequences, 1, queries, 1}, dtype);
}

Tensor window_mask(Tensor const& centres, double reach, Visibility const& visibility, Index keys) {
  Index const batch = std::max(centres.size(0), visibility.sequences());
  Index const heads = centres.size(1);
  Index const queries = centres.size(2);
  Tensor mask = Tensor::zeros({batch, heads, queries, keys}, centres.dtype());
  kernels::with_real(mask.dtype(), [&](auto type) {
    auto* row = mask.mutable_data<decltype(type)>().data();
    for (Index b = 0; b < batch; ++b) {
      for (Index at = 0; at < heads * queries; ++at, row += keys) {
        double const centre = centres.at((centres.size(0) == 1 ? 0 : b) * heads * queries + at);
        auto const window = kernels::window_around(centre, reach, visibility.range(b, at % queries, keys));
        std::fill(row + window.first, row + window.last, decltype(type)(1));
      }
    }
  });
  return mask;
}

}  // namespace heed
