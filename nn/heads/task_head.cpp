#include "nn/heads/task_head.hpp"

#include "autograd/error.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/loss.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/layers.hpp"

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

namespace {

/// The class of an example: softmax(W h + b) of its summary h (Radford et al. 2018, eq. 3; Devlin et al. 2019, section 4.1). Of a pair that
/// is shown in both orders, inputs [B, 2, T], h is the sum of both summaries.
class Classification : public TaskHead {
 public:
  Classification(HeadParts const& parts, TaskHeadSettings const& settings)
      : TaskHead(parts, settings, "classification", {.name = "label", .targets = "label", .of_classes = parts.data["label"].weights}),
        linear_(parts.scope.at("classification"), width(), parts.data["label"].classes, true) {
    if (has_options(parts.data)) throw Error("model.head: options of a multiple choice have no classes; use head: choice");
  }

 private:
  LinearHead logits(Streams const& streams, Batch const& batch, Pass const& pass) const override {
    Tensor const h = summary(streams, pass);
    Index const rows = batch.rows();
    return {h.size(0) == rows ? h : sum(reshape(h, {rows, -1, h.size(1)}), {1}), linear_.weight, linear_.bias};
  }

  Linear linear_;
};

Declared<HeadKind> const classification_head{head_of<Classification, TaskHeadSettings>(
    "classification", "the class of a text or of a pair of texts (Radford et al. 2018; Devlin et al. 2019)")};

/// Which of K options is right: softmax over k of v·h_k, h_k the summary of the sequence with option k, inputs [B, K, T] (Radford et al.
/// 2018, section 3.3; Devlin et al. 2019, section 4.4).
class MultipleChoice : public TaskHead {
 public:
  MultipleChoice(HeadParts const& parts, TaskHeadSettings const& settings)
      : TaskHead(parts, settings, "choice", {"label", "label"}), vector_(parts.scope.at("choice"), width(), 1, false) {
    check_options(parts.data);
  }

 private:
  LinearHead logits(Streams const& streams, Batch const& batch, Pass const& pass) const override {
    Tensor const scores = vector_(summary(streams, pass));  // [B·K, 1]
    return {reshape(scores, {batch.rows(), -1})};
  }

  Linear vector_;
};

Declared<HeadKind> const choice_head{
    head_of<MultipleChoice, TaskHeadSettings>("choice", "which of several options is right (Radford et al. 2018; Devlin et al. 2019)")};

/// Where an answer begins and ends in a passage: P_i = exp(S·T_i)/Σ_j exp(S·T_j) and the same with E for its end, logits [B, 2, T] (Devlin
/// et al. 2019, section 4.2). Positions that are not the passage's (part "passage" is 0) have no probability; the position of the summary
/// token stands for "no answer" (section 4.3).
class Span : public TaskHead {
 public:
  Span(HeadParts const& parts, TaskHeadSettings const& settings)
      : TaskHead(parts, settings, "span", {"span", "span"}), ends_(parts.scope.at("span"), width(), 2, true) {}

 private:
  LinearHead logits(Streams const& streams, Batch const& batch, Pass const& pass) const override {
    Tensor const scores = permute(ends_(per_token(streams, pass)), {0, 2, 1});  // [B, 2, T]
    Tensor const& passage = batch["passage"];
    std::vector<double> outside;
    for (Index const part : passage.data<std::int64_t>()) outside.push_back(part == 0 ? no_choice : 0);
    return {scores + Tensor::of(outside, {passage.size(0), 1, passage.size(1)}, scores.dtype())};
  }

  Linear ends_;
};

struct SpanSettings : TaskHeadSettings {
  std::vector<InputPart> reads(HeadViews const& views) const override {
    return examples(views, {{"passage", views.examples}, {"span", views.examples}});
  }
};

Declared<HeadKind> const span_head{
    head_of<Span, SpanSettings>("span", "where an answer begins and ends in a passage (Devlin et al. 2019)")};

}  // namespace

}  // namespace heed
