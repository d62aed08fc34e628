// `recurrent: WIDTH` of a head for labelled examples: the outputs of a bidirectional LSTM over what it would read.

#include "autograd/ops/shape.hpp"
#include "nn/heads/task_head.hpp"
#include "nn/models/recurrent/recurrent.hpp"

namespace heed {

namespace {

/// Its summary: the last states of both directions.
class CellsOverFeatures : public FeatureLayer {
 public:
  CellsOverFeatures(Scope const& scope, Index in, Index width)
      : cells_(scope, {.cell = "lstm", .in = in, .width = width, .bidirectional = true}) {}

  Index width() const override { return cells_.width(); }
  Tensor per_token(Tensor const& x, Tensor const& lengths, Pass const& pass) const override {
    return permute(scanned(x, lengths, pass).outputs, {1, 0, 2});
  }
  Tensor summary(Tensor const& x, Tensor const& lengths, Pass const& pass) const override {
    auto const result = scanned(x, lengths, pass);
    return concatenate({result.forward.back()[0], result.backward.back()[0]}, 1);
  }

 private:
  Recurrent::RecurrentResult scanned(Tensor const& x, Tensor const& lengths, Pass const& pass) const {
    return cells_(permute(x, {1, 0, 2}), lengths, {}, pass);
  }

  Recurrent cells_;
};

Declared<RecurrentFeatures> const recurrent_features{
    [](Scope const& scope, Index in, Index width) { return std::make_unique<CellsOverFeatures>(scope, in, width); }};

}  // namespace

}  // namespace heed
