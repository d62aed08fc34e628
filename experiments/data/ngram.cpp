#include "experiments/data/ngram.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {
namespace {

/// Numbers the different pairs (context, token) in the order of their first appearance: an exact hash table with linear probing. It grows
/// with what is in it, so that few different pairs stay in the cache however long the text is.
class PairNumbers {
 public:
  explicit PairNumbers(Index vocabulary) : vocabulary_(static_cast<std::uint64_t>(vocabulary)), slots_(1024), shift_(64 - 10) {}

  std::int32_t add(std::int32_t context, std::int32_t token) {
    auto& slot = find_slot(key(context, token));
    if (slot.number >= 0) return slot.number;
    slot = {key(context, token), size_++};
    if (2 * static_cast<std::size_t>(size_) > slots_.size()) grow();
    return size_ - 1;
  }
  /// −1 if the pair was never added.
  std::int32_t find(std::int32_t context, std::int32_t token) { return find_slot(key(context, token)).number; }
  std::int32_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t number = -1;
  };
  std::uint64_t key(std::int32_t context, std::int32_t token) const {
    return static_cast<std::uint64_t>(context) * vocabulary_ + static_cast<std::uint64_t>(token);
  }
  void grow() {
    auto const before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    --shift_;
    for (Slot const& slot : before)
      if (slot.number >= 0) find_slot(slot.key) = slot;
  }
  Slot& find_slot(std::uint64_t wanted) {
    auto slot = static_cast<std::size_t>((wanted * 0x9e3779b97f4a7c15u) >> shift_);  // Fibonacci hashing
    while (slots_[slot].number >= 0 && slots_[slot].key != wanted) slot = (slot + 1) & (slots_.size() - 1);
    return slots_[slot];
  }

  std::uint64_t vocabulary_;
  std::vector<Slot> slots_;
  int shift_;
  std::int32_t size_ = 0;
};

constexpr std::int32_t no_context = -1;

}  // namespace

std::vector<double> witten_bell(std::span<std::int32_t const> train, std::span<std::int32_t const> held_out, Index vocabulary, int highest,
                                std::optional<std::int32_t> boundary) {
  for (auto const text : {train, held_out})
    for (auto const token : text)
      if (token < 0 || token >= vocabulary)
        throw Error(fmt::format("witten_bell: token {} is outside the vocabulary of {}", token, vocabulary));
  std::size_t const first = boundary ? 1 : 0;  // the first token to be predicted
  // For each token the number of the context before it; order 1 has one context, the empty one.
  std::vector<std::int32_t> train_contexts(train.size(), 0), held_out_contexts(held_out.size(), 0);
  std::int32_t contexts = 1;
  std::vector<double> probability(held_out.size(), 1.0 / static_cast<double>(vocabulary));
  std::vector<double> losses;

  for (int order = 1; order <= highest; ++order) {
    PairNumbers grams(vocabulary);
    // What ends at one token is the next one's context in the next order, unless that would reach beyond a boundary.
    auto const as_context = [&](std::int32_t gram, std::int32_t token) { return boundary == token && order > 1 ? no_context : gram; };
    std::int32_t next = no_context;
    std::vector<std::int32_t> count, total(static_cast<std::size_t>(contexts)), types(static_cast<std::size_t>(contexts));
    for (std::size_t i = 0; i < train.size(); ++i) {
      auto const context = std::exchange(train_contexts[i], std::exchange(next, no_context));
      if (context == no_context) continue;
      auto const gram = grams.add(context, train[i]);
      next = as_context(gram, train[i]);
      count.resize(static_cast<std::size_t>(grams.size()));
      if (i < first) continue;
      ++at(total, context);
      at(types, context) += at(count, gram)++ == 0;
    }

    double loss = 0;
    next = no_context;
    for (std::size_t i = 0; i < held_out.size(); ++i) {
      auto const context = std::exchange(held_out_contexts[i], std::exchange(next, no_context));
      if (context != no_context) {
        auto const gram = grams.find(context, held_out[i]);
        double const c = gram == no_context ? 0 : at(count, gram);
        double const t = at(types, context), n = at(total, context);
        if (n > 0) probability[i] = (c + t * probability[i]) / (n + t);
        next = as_context(gram, held_out[i]);
      }
      if (i >= first) loss -= std::log(probability[i]);
    }
    losses.push_back(loss / static_cast<double>(held_out.size() - first));
    contexts = grams.size();
  }
  return losses;
}

}  // namespace heed
