#include "nn/heads/task_head.hpp"

#include "autograd/error.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"

namespace heed {

std::vector<Field> TaskHeadSettings::fields() {
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
  all.push_back(
      field(&auxiliary, "auxiliary", "weight of an auxiliary language-model loss on the examples (Radford et al. 2018: 0.5)").in(0, 1000));
  return all;
}

std::optional<std::string> TaskHeadSettings::contradiction() {
  if (features == "embeddings" && pool == "token" && !recurrent)
    return "pool: the embedding of one token does not depend on the text; use mean, or recurrent with a width";
  return std::nullopt;
}

std::vector<InputPart> TaskHeadSettings::examples(HeadViews const& views, std::vector<InputPart> const& labels) const {
  std::vector<InputPart> parts{{"inputs", views.examples}};
  if (views.segments) parts.push_back({"segments", views.examples});
  if (predicts_tokens()) parts.push_back({"targets", views.examples});
  parts.insert(parts.end(), labels.begin(), labels.end());
  return parts;
}

TaskHead::TaskHead(HeadParts const& parts, TaskHeadSettings const& settings, std::string const& kind, Term task)
    : OutputHead(parts),
      task_(std::move(task)),
      auxiliary_(settings.auxiliary),
      dropout_(settings.dropout),
      features_(settings.features),
      pool_(settings.pool),
      path_(parts.scope.at(kind).path()),
      first_(parts.summary_is_first),
      width_(parts.width) {
  if (auxiliary_ > 0 && first_) throw Error("model.head.auxiliary: an auxiliary language-model loss needs a causal model");
  Scope const scope = parts.scope.at(kind);
  if (features_ == "weighted") {
    mix_ = scope.parameter("mix", {parts.layers}, Initial::constant(0), WeightDecay::off);
    factor_ = scope.parameter("factor", {1}, Initial::constant(1), WeightDecay::off);
    ones_ = Tensor::ones({parts.width}, scope.dtype());
    zeros_ = Tensor::zeros({parts.width}, scope.dtype());
  }
  if (!settings.recurrent) return;
  cells_ = Registry<RecurrentFeatures>::all().at(0)(scope.at("cells"), parts.width, *settings.recurrent);
  width_ = cells_->width();
}

std::vector<Term> TaskHead::terms() const {
  std::vector<Term> all{task_};
  if (auxiliary_ > 0) all.push_back({.weight = auxiliary_});
  return all;
}

std::vector<Prediction> TaskHead::predictions(Streams const& streams, Batch const& batch, Pass const& pass) const {
  std::vector<Prediction> all{{task_, logits(streams, batch, pass)}};
  if (auxiliary_ <= 0) return all;
  Tensor const& x = streams.last();
  Shape const& of_targets = batch["targets"].shape();
  std::vector<Index> shape(of_targets.begin(), of_targets.end());
  shape.push_back(x.size(-1));
  all.push_back({terms()[1], words(reshape(x, shape))});
  return all;
}

Tensor TaskHead::read(Streams const& streams) const {
  if (features_ == "last") return streams.last();
  if (features_ == "embeddings") return streams.layers.front();
  Tensor const shares = softmax(mix_, -1);
  Tensor sum;
  for (std::size_t layer = 0; layer < streams.layers.size(); ++layer) {
    auto const l = static_cast<Index>(layer);
    Tensor const part = slice(shares, 0, l, l + 1) * layer_norm(streams.layers[layer], ones_, zeros_);
    sum = sum.defined() ? sum + part : part;
  }
  return factor_ * sum;
}

Tensor TaskHead::of_positions(Streams const& streams, Pass const& pass) const {
  Tensor const x = read(streams);
  return cells_ ? cells_->per_token(x, streams.lengths, pass) : x;
}

Tensor TaskHead::per_token(Streams const& streams, Pass const& pass) const {
  return pass.dropout(of_positions(streams, pass), dropout_, path_);
}

Tensor TaskHead::summary(Streams const& streams, Pass const& pass) const {
  auto const found = [&] {
    if (pool_ == "mean") return mean_of_tokens(of_positions(streams, pass), streams.lengths);
    Tensor const x = read(streams);
    return cells_ ? cells_->summary(x, streams.lengths, pass) : at_summary(x, streams.lengths, first_);
  };
  return pass.dropout(found(), dropout_, path_);
}

}  // namespace heed
