#include "nn/heads/features.hpp"

#include <algorithm>

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"

namespace heed {

std::vector<Field> FeatureSettings::fields() {
  std::vector<Field> all{
      field(&features, "features",
            "last: output of the last layer; weighted: sum of all layers with learned weights (Peters et al. 2018); embeddings: input "
            "of the first layer")
          .one_of({"last", "weighted", "embeddings"}),
      field(&pool, "pool", "pooling of a sequence: token ([CLS] or the extract token), or mean over all positions")
          .one_of({"token", "mean"}),
  };
  if (!Registry<RecurrentFeatures>::all().empty())
    all.push_back(field(&recurrent, "recurrent", "width of a bidirectional LSTM over the features; none: no LSTM").in(1, 65536));
  all.push_back(field(&dropout, "dropout", "dropout on the input of the last linear layer").in(0, 0.999));
  return all;
}

std::optional<std::string> FeatureSettings::contradiction() const {
  if (features == "embeddings" && pool == "token" && !recurrent)
    return "pool: the embedding of one token does not depend on the text; use mean, or recurrent with a width";
  return std::nullopt;
}

Features::Features(HeadParts const& parts, FeatureSettings const& settings, std::string const& name)
    : settings_(settings), path_(parts.scope.at(name).path()), first_(parts.summary_is_first), width_(parts.width) {
  Scope const scope = parts.scope.at(name);
  if (settings_.features == "weighted") {
    mix_ = scope.parameter("mix", {parts.layers}, Initial::constant(0), WeightDecay::off);
    factor_ = scope.parameter("factor", {1}, Initial::constant(1), WeightDecay::off);
    ones_ = Tensor::ones({parts.width}, scope.dtype());
    zeros_ = Tensor::zeros({parts.width}, scope.dtype());
  }
  if (!settings_.recurrent) return;
  cells_ = Registry<RecurrentFeatures>::all().at(0)(scope.at("cells"), parts.width, *settings_.recurrent);
  width_ = cells_->width();
}

Tensor Features::read(Streams const& streams) const {
  if (settings_.features == "last") return streams.last();
  if (settings_.features == "embeddings") return streams.layers.front();
  Tensor const shares = softmax(mix_, -1);
  Tensor sum;
  for (std::size_t layer = 0; layer < streams.layers.size(); ++layer) {
    auto const l = static_cast<Index>(layer);
    Tensor const part = slice(shares, 0, l, l + 1) * layer_norm(streams.layers[layer], ones_, zeros_);
    sum = sum.defined() ? sum + part : part;
  }
  return factor_ * sum;
}

Tensor Features::per_token(Streams const& streams, Pass const& pass) const {
  Tensor x = read(streams);
  if (cells_) x = cells_->per_token(x, streams.lengths, pass);
  return pass.dropout(x, settings_.dropout, path_);
}

Tensor mean_of_tokens(Tensor const& x, Tensor const& lengths) {
  Index const rows = x.size(0), tokens = x.size(1);
  std::vector<double> shares(static_cast<std::size_t>(rows * tokens), 0.0);
  for (Index row = 0; row < rows; ++row) {
    Index const length = lengths.defined() ? at(lengths.data<std::int64_t>(), row) : tokens;
    auto const begin = shares.begin() + row * tokens;
    std::fill(begin, begin + length, 1 / static_cast<double>(length));
  }
  return sum(x * Tensor::of(shares, {rows, tokens, 1}, x.dtype()), {1});
}

Tensor Features::summary(Streams const& streams, Pass const& pass) const {
  auto const found = [&] {
    Tensor const x = read(streams);
    if (settings_.pool == "mean") return mean_of_tokens(cells_ ? cells_->per_token(x, streams.lengths, pass) : x, streams.lengths);
    return cells_ ? cells_->summary(x, streams.lengths, pass) : at_summary(x, streams.lengths, first_);
  };
  return pass.dropout(found(), settings_.dropout, path_);
}

Tensor at_summary(Tensor const& x, Tensor const& lengths, bool first) {
  Index const rows = x.size(0), tokens = x.size(1);
  std::vector<Index> index;
  for (Index row = 0; row < rows; ++row) {
    Index const length = lengths.defined() ? at(lengths.data<std::int64_t>(), row) : tokens;
    index.push_back(row * tokens + (first ? 0 : length - 1));
  }
  return take(reshape(x, {rows * tokens, x.size(2)}), index);
}

}  // namespace heed
