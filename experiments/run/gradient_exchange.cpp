#include "experiments/run/gradient_exchange.hpp"

#include <algorithm>

#include "autograd/kernels/dispatch.hpp"

namespace heed {

namespace {

constexpr std::int64_t bucket_bytes = std::int64_t{4} << 20;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Where rank r's piece of the numbers begin … end − 1 begins; for r = `size`, the end.
std::int64_t piece_begin(std::int64_t begin, std::int64_t end, std::int64_t rank) { return begin + (end - begin) * rank / ranks().size(); }

/// Memory for pieces of these lengths in bytes.
struct PieceBuffer {
  Pieces pieces;
  std::unique_ptr<std::byte[]> bytes;

  explicit PieceBuffer(std::vector<int> lengths) : pieces{nullptr, std::move(lengths)} {
    std::size_t all = 0;
    for (int const length : pieces.bytes) all += static_cast<std::size_t>(length);
    bytes = std::make_unique_for_overwrite<std::byte[]>(all);
    pieces.data = bytes.get();
  }
};

}  // namespace

/// A bucket in transfer: numbers begin … end − 1 of the row.
struct GradientExchange::Bucket {
  std::int64_t begin, end;
  PieceBuffer sent, received, summed;
  std::unique_ptr<Transfer> exchange, gather{};
};

GradientExchange::GradientExchange(Parameters const& parameters, std::int64_t count, GradientSum const& sum, ExchangeCost& cost)
    : parameters_(parameters.all()),
      dtype_(parameters.dtype()),
      count_(count),
      sum_(sum),
      cost_(cost),
      begins_(parameters_.size()),
      ready_(parameters_.size()),
      sums_(parameters_.size()),
      first_ready_(parameters_.size()) {
  for (std::int64_t rank = 0; rank < ranks().size(); ++rank) parts_.push_back(subtrees(count, part_of(count, rank, ranks().size())));
  std::int64_t next = 0;
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    begins_[i] = next;
    if (!parameters_[i].second.frozen()) next += parameters_[i].second.elements();
  }
}

GradientExchange::~GradientExchange() = default;

/// Parameter i's gradient, summed over this rank's subtree `set`.
Tensor GradientExchange::source(std::size_t i, std::size_t set) const {
  return set + 1 < sum_.parts().size() ? sum_.earlier()[set][i] : parameters_[i].second.grad();
}

/// Calls f(parameter, first number within the parameter, its position within the range, count) for every parameter that has numbers in the
/// range.
template <class F>
void GradientExchange::for_parameters(std::int64_t begin, std::int64_t end, F const& f) const {
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    if (parameters_[i].second.frozen()) continue;
    std::int64_t const first = std::max(begin, begins_[i]), last = std::min(end, begins_[i] + parameters_[i].second.elements());
    if (first < last) f(i, first - begins_[i], first - begin, last - first);
  }
}

/// Copies numbers of a subtree's sum. A missing gradient is −0, which leaves every number unchanged when added to it.
void GradientExchange::read(std::int64_t begin, std::int64_t end, std::size_t set, std::byte* into) const {
  kernels::with_real(dtype_, [&](auto zero) {
    using Real = decltype(zero);
    auto* const numbers = reinterpret_cast<Real*>(into);
    for_parameters(begin, end, [&](std::size_t i, std::int64_t from, std::int64_t to, std::int64_t many) {
      Tensor const gradient = source(i, set);
      if (gradient.defined())
        std::copy_n(gradient.data<Real>().data() + from, many, numbers + to);
      else
        std::fill_n(numbers + to, many, -zero);
    });
  });
}

void GradientExchange::write(std::int64_t begin, std::int64_t end, std::byte const* from) {
  kernels::with_real(dtype_, [&](auto zero) {
    using Real = decltype(zero);
    for_parameters(begin, end, [&](std::size_t i, std::int64_t to, std::int64_t first, std::int64_t many) {
      if (!sums_[i].defined()) sums_[i] = Tensor(parameters_[i].second.shape(), dtype_);
      std::copy_n(reinterpret_cast<Real const*>(from) + first, many, sums_[i].mutable_data<Real>().data() + to);
    });
  });
}

void GradientExchange::send(std::int64_t begin, std::int64_t end) {
  std::int64_t const bytes = static_cast<std::int64_t>(bytes_of(dtype_)), me = ranks().rank(), size = ranks().size();
  auto const piece = [&](std::int64_t rank) { return bytes * (piece_begin(begin, end, rank + 1) - piece_begin(begin, end, rank)); };
  auto const sets = static_cast<std::int64_t>(sum_.parts().size());
  std::vector<int> sent, received, summed;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    sent.push_back(static_cast<int>(sets * piece(rank)));
    received.push_back(static_cast<int>(std::ssize(parts_[at(rank)]) * piece(me)));
    summed.push_back(static_cast<int>(piece(rank)));
    if (rank != me) cost_.bytes += static_cast<double>(sent.back()) + static_cast<double>(piece(me));
  }
  cost_.messages += 2 * static_cast<double>(size - 1);
  auto bucket = std::make_unique<Bucket>(Bucket{begin, end, PieceBuffer(sent), PieceBuffer(received), PieceBuffer(summed), nullptr});
  std::byte* next = bucket->sent.bytes.get();
  for (std::int64_t rank = 0; rank < size; ++rank)
    for (std::size_t set = 0; set < sum_.parts().size(); ++set) {
      read(piece_begin(begin, end, rank), piece_begin(begin, end, rank + 1), set, next);
      next += piece(rank);
    }
  bucket->exchange = ranks().start_exchange(bucket->sent.pieces, bucket->received.pieces);
  buckets_.push_back(std::move(bucket));
}

/// Called when this rank's piece of a bucket has come from all ranks: sums it by the tree and starts to send the sum to all.
void GradientExchange::sum_and_gather(Bucket& bucket) const {
  std::int64_t const me = ranks().rank();
  std::int64_t const many = piece_begin(bucket.begin, bucket.end, me + 1) - piece_begin(bucket.begin, bucket.end, me);
  std::vector<MicroBatches> all;
  for (auto const& parts : parts_) all.insert(all.end(), parts.begin(), parts.end());
  kernels::with_real(dtype_, [&](auto zero) {
    auto* const numbers = reinterpret_cast<decltype(zero)*>(bucket.received.bytes.get());
    sum_by_tree(count_, all, [&](std::size_t into, std::size_t from) {
      auto* const a = numbers + static_cast<std::int64_t>(into) * many;
      auto const* const b = numbers + static_cast<std::int64_t>(from) * many;
      for (std::int64_t k = 0; k < many; ++k) a[k] += b[k];
    });
  });
  bucket.gather = ranks().start_gather(bucket.received.bytes.get(), bucket.summed.pieces);
}

/// Advances the transfers of all buckets, in order; `wait`: until all are over.
void GradientExchange::advance(bool wait) {
  for (auto const& bucket : buckets_) {
    if (bucket->gather) continue;
    if (wait) bucket->exchange->wait();
    if (!wait && !bucket->exchange->over()) break;
    sum_and_gather(*bucket);
  }
  while (!buckets_.empty() && buckets_.front()->gather) {
    Bucket const& bucket = *buckets_.front();
    if (wait) bucket.gather->wait();
    if (!wait && !bucket.gather->over()) break;
    write(bucket.begin, bucket.end, bucket.summed.bytes.get());
    buckets_.pop_front();
  }
}

void GradientExchange::send_ready() {
  while (first_ready_ > 0 && ready_[first_ready_ - 1]) --first_ready_;
  std::int64_t const numbers = bucket_bytes / static_cast<std::int64_t>(bytes_of(dtype_));
  auto const end_of = [&](std::size_t i) { return begins_[i] + (parameters_[i].second.frozen() ? 0 : parameters_[i].second.elements()); };
  std::int64_t const whole = first_ready_ < parameters_.size() ? end_of(first_ready_) : 0;
  while (whole - sent_ >= numbers) {
    send(sent_, sent_ + numbers);
    sent_ += numbers;
  }
  if (first_ready_ > 0 || whole == sent_) return;
  send(sent_, whole);
  sent_ = whole;
}

void GradientExchange::ready(std::size_t i) {
  ready_[i] = true;
  send_ready();
  advance(false);
}

std::vector<bool> GradientExchange::all_ready() {
  std::fill(ready_.begin(), ready_.end(), true);
  send_ready();
  std::vector<bool> present(parameters_.size());
  for (std::size_t i = 0; i < present.size(); ++i)
    for (std::size_t set = 0; set < sum_.parts().size(); ++set) present[i] = present[i] || source(i, set).defined();
  return present;
}

void GradientExchange::finish(std::vector<bool> const& present) {
  advance(true);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Tensor parameter = parameters_[i].second;
    parameter.set_grad(present[i] ? sums_[i] : Tensor());
  }
}

}  // namespace heed
