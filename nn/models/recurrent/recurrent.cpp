#include "nn/models/recurrent/recurrent.hpp"

#include <utility>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/batch.hpp"
#include "nn/heads/task_head.hpp"

namespace heed {

namespace {

/// The outputs of `steps` steps and, behind them, the last states.
Scanned apart(Tensor const& scanned, Index steps) {
  States last;
  for (Index k = steps; k < scanned.size(0); ++k) last.push_back(squeeze(slice(scanned, 0, k, k + 1), 0));
  return {slice(scanned, 0, 0, steps), std::move(last)};
}

/// A cell whose steps the engine makes as one operation.
CellKind fused_cell(char const* name, char const* formula, char const* paper, CellForm form) {
  auto const step = [form](Tensor const& a, Tensor const& b, States const& before) { return cell_step(form, a, b, before); };
  return {name, formula, paper, gates_of(form), states_of(form), step, form};
}

// r, z = σ(W x + U h), n = tanh(W_n x + r ∘ U_n h), h' = (1 − z) ∘ n + z ∘ h: gated, without a state of its own behind the output
Declared<CellKind> const gru_cell{fused_cell("gru", "(1 − z) n + z h, n = tanh(W x + r U h)", "Cho et al. 2014", CellForm::gru)};

// i, f, o = σ(W x + U h), g = tanh(W_g x + U_g h), c' = f ∘ c + i ∘ g, h' = o ∘ tanh c'
Declared<CellKind> const lstm_cell{fused_cell("lstm", "o tanh(f c + i g)", "Hochreiter & Schmidhuber 1997", CellForm::lstm)};

// h' = tanh(W x + U h)
Declared<CellKind> const tanh_cell{fused_cell("tanh", "tanh(W x + U h)", "Elman 1990", CellForm::tanh)};

}  // namespace

CellKind const& cell_kind(std::string const& name) { return Registry<CellKind>::at(name, "cell: there is no"); }

States chosen_rows(States const& states, std::span<Index const> rows) {
  return mapped(states, [&](Tensor const& state) { return take(state, rows); });
}

RecurrentCell::RecurrentCell(Scope const& scope, std::string const& kind, Index in, Index width, bool normed)
    : kind_(cell_kind(kind)),
      part_(scope.path()),
      input_(scope.at("input"), in, kind_.gates * width, !normed),
      recurrent_(scope.at("recurrent"), width, kind_.gates * width, !normed) {
  if (!normed) return;
  input_norm_.emplace(scope.at("input_norm"), kind_.gates * width, "layer");
  recurrent_norm_.emplace(scope.at("recurrent_norm"), kind_.gates * width, "layer");
}

bool RecurrentCell::fused() const { return kind_.form && !recurrent_norm_ && !ReferenceCells::alive(); }

States RecurrentCell::begin(Index rows) const {
  return States(static_cast<std::size_t>(kind_.states), Tensor::zeros({rows, width()}, recurrent_.weight.dtype()));
}

States RecurrentCell::step_of(Tensor const& a, States const& before) const {
  ModelPart const here(part_);
  if (fused()) return apart(heed::scan(*kind_.form, {}, unsqueeze(a, 0), recurrent_.weight, recurrent_.bias, before), 1).last;
  Tensor const b = recurrent_(before[0]);
  return recurrent_norm_ ? kind_.step((*input_norm_)(a), (*recurrent_norm_)(b), before) : kind_.step(a, b, before);
}

Scanned RecurrentCell::scan(Tensor const& x, ScanOrder const& order, States const& start, Pass const& pass) const {
  ModelPart const here(part_);
  Tensor const a = input_(x);
  States const from = start.empty() ? begin(x.size(1)) : start;
  if (fused() && !pass.watches_recurrence())
    return apart(heed::scan(*kind_.form, order, a, recurrent_.weight, recurrent_.bias, from), x.size(0));
  std::vector<Tensor> outputs;  // before each step, and at the end
  auto const step = [&](Tensor const& of_input, States const& before) {
    outputs.push_back(before[0]);
    return step_of(of_input, before);
  };
  Scanned scanned = apart(scan_by_steps(order, a, from, step), x.size(0));
  outputs.push_back(scanned.last[0]);
  if (pass.watches_recurrence()) pass.watching.observer->recurrence(part_, std::span(outputs).subspan(1));
  return scanned;
}

double RecurrentCell::flops() const { return 2 * static_cast<double>(input_.weight.elements() + recurrent_.weight.elements()); }

Tensor time_step(Tensor const& x, Index t) { return reshape(slice(x, 0, t, t + 1), {x.size(1), x.size(2)}); }

Scope layer_scope(Scope const& scope, Index layer, Index layers) { return layers > 1 ? scope.at(std::to_string(layer)) : scope; }

Recurrent::Recurrent(Scope const& scope, RecurrentShape const& shape) : shape_(shape), part_(scope.path()) {
  for (Index layer = 0; layer < shape.layers; ++layer) {
    Scope const here = layer_scope(scope, layer, shape.layers);
    Index const in = layer == 0 ? shape.in : width();
    forward_.emplace_back(here.at("forward"), shape.cell, in, shape.width, shape.normed);
    if (shape.bidirectional) backward_.emplace_back(here.at("backward"), shape.cell, in, shape.width, shape.normed);
  }
}

Recurrent::RecurrentResult Recurrent::operator()(Tensor x, Tensor const& lengths, std::vector<States> const& start,
                                                 Pass const& pass) const {
  RecurrentResult result;
  for (std::size_t layer = 0; layer < forward_.size(); ++layer) {
    if (layer > 0) x = pass.dropout(x, shape_.dropout, fmt::format("{}.{}", part_, layer));
    auto [outputs, last] = forward_[layer].scan(x, {lengths, shape_.from_end}, start.empty() ? States() : start[layer], pass);
    result.forward.push_back(std::move(last));
    if (shape_.bidirectional) {
      auto const other = backward_[layer].scan(x, {lengths, true}, {}, pass);
      outputs = concatenate({outputs, other.outputs}, -1);
      result.backward.push_back(other.last);
    }
    x = outputs;
  }
  result.outputs = x;
  return result;
}

double Recurrent::flops() const {
  double operations = 0;
  for (auto const* cells : {&forward_, &backward_})
    for (RecurrentCell const& cell : *cells) operations += cell.flops();
  return operations;
}

namespace {

/// `recurrent: WIDTH` of a head for labelled examples: the outputs of a bidirectional LSTM over what it would read, or both last states.
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
