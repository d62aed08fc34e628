#include "experiments/data/ngram.hpp"

#include <cmath>

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
    for (Slot const& slot : before) {
      if (slot.number >= 0) find_slot(slot.key) = slot;
    }
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

/// Replaces the number of the k-gram that ends at token i by that of the k tokens before token i, its context in a (k + 1)-gram; k = order.
/// A context that would reach beyond a boundary token is none.
void shift_by_one(std::vector<std::int32_t>& numbers, std::span<std::int32_t const> tokens, int order,
                  std::optional<std::int32_t> boundary) {
  for (std::size_t i = numbers.size(); i-- > 1;) numbers[i] = boundary == tokens[i - 1] && order > 1 ? no_context : numbers[i - 1];
  if (!numbers.empty()) numbers[0] = no_context;
}

void check_tokens(std::span<std::int32_t const> tokens, Index vocabulary) {
  for (auto token : tokens)
    if (token < 0 || token >= vocabulary)
      throw Error(fmt::format("witten_bell: token {} is outside the vocabulary of {}", token, vocabulary));
}

}  // namespace

std::vector<double> witten_bell(std::span<std::int32_t const> train, std::span<std::int32_t const> held_out, Index vocabulary, int highest,
                                std::optional<std::int32_t> boundary) {
  check_tokens(train, vocabulary);
  check_tokens(held_out, vocabulary);
  std::size_t const first = boundary ? 1 : 0;  // the first token to be predicted
  // For each token the number of the context before it; order 1 has one context, the empty one.
  std::vector<std::int32_t> train_contexts(train.size(), 0), held_out_contexts(held_out.size(), 0);
  std::int32_t contexts = 1;
  std::vector<double> probability(held_out.size(), 1.0 / static_cast<double>(vocabulary));
  std::vector<double> losses;

  for (int order = 1; order <= highest; ++order) {
    PairNumbers grams(vocabulary);
    std::vector<std::int32_t> count, total(static_cast<std::size_t>(contexts)), types(static_cast<std::size_t>(contexts));
    for (std::size_t i = 0; i < train.size(); ++i) {
      if (train_contexts[i] == no_context) continue;
      auto const context = static_cast<std::size_t>(train_contexts[i]);
      auto const gram = grams.add(train_contexts[i], train[i]);
      train_contexts[i] = gram;
      count.resize(static_cast<std::size_t>(grams.size()));
      if (i < first) continue;
      ++total[context];
      types[context] += at(count, gram)++ == 0;
    }

    double loss = 0;
    for (std::size_t i = 0; i < held_out.size(); ++i) {
      if (held_out_contexts[i] != no_context) {
        auto const context = static_cast<std::size_t>(held_out_contexts[i]);
        auto const gram = grams.find(held_out_contexts[i], held_out[i]);
        double const c = gram == no_context ? 0 : at(count, gram);
        double const t = types[context], n = total[context];
        if (n > 0) probability[i] = (c + t * probability[i]) / (n + t);
        held_out_contexts[i] = gram;
      }
      if (i >= first) loss -= std::log(probability[i]);
    }
    losses.push_back(loss / static_cast<double>(held_out.size() - first));
    contexts = grams.size();
    shift_by_one(train_contexts, train, order, boundary);
    shift_by_one(held_out_contexts, held_out, order, boundary);
  }
  return losses;
}

}  // namespace heed
