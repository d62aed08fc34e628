#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "nn/decode.hpp"

namespace heed {

Decoder::Decoder(Model const& model) : model_(model), slack_(model.context() / 8), decoding_(model.decode({}, {})) {
  if (!decoding_) throw Error("generate: a model of this kind does not continue a text");
  if (auto const limit = model.limit()) slack_ = std::clamp<Index>(*limit - model.context(), 0, slack_);
}

Index Decoder::first_seen() const {
  auto const beyond = static_cast<Index>(tokens_.size()) - (model_.context() + slack_);
  if (beyond <= 0) return 0;
  auto const stride = slack_ + 1;  // the first token moves by so many at once: at least `context` stay
  return (beyond + stride - 1) / stride * stride;
}

Tensor Decoder::read(std::span<Index const> tokens) {
  if (tokens.empty()) throw Error("generate: there is no token to continue from");
  auto const known = static_cast<Index>(tokens_.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  auto const first = first_seen();
  bool const goes_on = first == first_;
  if (!goes_on) {
    decoding_->restart();
    first_ = first;
  }
  std::vector<Index> const fresh(tokens_.begin() + (goes_on ? known : first), tokens_.end());
  return decoding_->scores(Tensor::of(fresh, {1, static_cast<Index>(fresh.size())})).viewed({model_.vocabulary()});
}

std::vector<TokenCandidate> candidates(std::span<double const> scores, SamplingSettings const& settings) {
  if (!(settings.temperature >= 0) || std::isinf(settings.temperature))
    throw Error(fmt::format("generate: temperature {} is not a finite number ≥ 0", settings.temperature));
  if (settings.top_k < 0) throw Error(fmt::format("generate: top_k {} is less than 0", settings.top_k));
  if (!(settings.top_p > 0 && settings.top_p <= 1)) throw Error(fmt::format("generate: top_p {} is not in (0, 1]", settings.top_p));

  if (settings.tokens > 0) scores = scores.first(static_cast<std::size_t>(settings.tokens));
  double largest = -std::numeric_limits<double>::infinity();
  for (double const score : scores) {
    if (std::isnan(score)) throw NonFinite("generate: a score of the model is NaN");
    largest = std::max(largest, score);
  }
  if (!std::isfinite(largest)) throw NonFinite(fmt::format("generate: the largest score of the model is {}", largest));

  std::vector<TokenCandidate> all(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    double const below = scores[i] - largest;  // first the difference, then the quotient: no overflow however small the temperature
    double const weight = settings.temperature == 0 ? (below == 0 ? 1 : 0) : std::exp(below == 0 ? 0 : below / settings.temperature);
    all[i] = {static_cast<Index>(i), weight};
  }
  auto const more_probable = [](TokenCandidate const& a, TokenCandidate const& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
  };
  auto const keep = [&](std::size_t count) { all.resize(std::min(all.size(), std::max<std::size_t>(count, 1))); };
  auto const max_count = settings.temperature == 0 ? 1 : settings.top_k > 0 ? static_cast<std::size_t>(settings.top_k) : all.size();
  if (max_count < all.size()) std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(max_count), more_probable);
  keep(max_count);
  std::ranges::sort(all, more_probable);
  while (all.back().probability == 0) all.pop_back();

  auto const total = [&] {
    double sum = 0;
    for (auto const& candidate : all) sum += candidate.probability;
    return sum;
  };
  if (settings.top_p < 1) {
    double const wanted = settings.top_p * total();
    double sum = 0;
    std::size_t count = 0;
    while (count < all.size() && sum < wanted) sum += all[count++].probability;
    keep(count);
  }
  double const sum = total();
  for (auto& candidate : all) candidate.probability /= sum;
  return all;
}

Index draw_token(std::vector<TokenCandidate> const& candidates, double u) {
  double sum = 0;
  for (auto const& candidate : candidates) {
    sum += candidate.probability;
    if (u < sum) return candidate.token;
  }
  return candidates.back().token;  // the sum fell short of one by rounding
}

void generate(Model const& model, std::span<Index const> prompt, Index count, SamplingSettings const& settings, Stream const& stream,
              std::function<bool(Index)> const& emit) {
  Decoder decoder(model);
  Tensor scores = decoder.read(prompt);
  for (Index i = 0; i < count; ++i) {
    auto const token = draw_token(candidates(scores.to_vector(), settings), stream.uniform(static_cast<std::uint64_t>(i)));
    if (!emit(token) || i + 1 == count) return;
    scores = decoder.read({&token, 1});
  }
}

}  // namespace heed
