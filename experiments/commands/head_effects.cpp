#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/loss.hpp"
#include "autograd/ops/shape.hpp"
#include "experiments/commands/inspect.hpp"
#include "experiments/config/table.hpp"
#include "experiments/report/gnuplot.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

namespace {

/// The contexts of every attention layer in a pass, in its order: [B, n, H·d_v].
using LayerContexts = std::vector<std::pair<std::string, Tensor>>;

LayerContexts contexts_of(Model const& model, Tensor const& tokens) {
  LayerContexts all;
  Observer const observer{.contexts = [&](std::string const& layer, Tensor const& contexts) {
    all.emplace_back(layer, contexts);
    return contexts;
  }};
  Pass pass;
  pass.watching.observer = &observer;
  model.run(Batch{{"inputs", tokens}}, pass);
  return all;
}

/// The mean cross entropy of each token after the first.
double loss_of(Model const& model, Tensor const& tokens, Observer const* observer) {
  Pass pass;
  pass.watching.observer = observer;
  Tensor const logits = model.logits(Batch{{"inputs", tokens}}, pass);
  Index const length = tokens.size(1), classes = logits.size(-1);
  Tensor const of_next = slice(reshape(logits, {1, length, classes}), 1, 0, length - 1);
  return cross_entropy(of_next, slice(tokens, 1, 1, length)).item();
}

/// LayerContexts with those of one head replaced: by zeros, or by another text's.
Tensor with_head(Tensor const& contexts, Tensor const& other, Index head, Index heads) {
  Index const width = contexts.size(2) / heads;
  std::vector<Tensor> parts = split(contexts, std::vector<Index>(static_cast<std::size_t>(heads), width), 2);
  Tensor& part = at(parts, head);
  part = other.defined() ? slice(other, 2, head * width, (head + 1) * width) : Tensor::zeros(part.shape(), part.dtype());
  return concatenate(parts, 2);
}

/// The change of the loss for every layer [layers][heads].
std::vector<std::vector<double>> changes_of(Model const& model, Tensor const& tokens, LayerContexts const& layers,
                                            LayerContexts const& others, Index heads) {
  double const whole = loss_of(model, tokens, nullptr);
  std::vector<std::vector<double>> changes;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto& row = changes.emplace_back();
    for (Index head = 0; head < heads; ++head) {
      Observer const observer{.contexts = [&](std::string const& layer, Tensor const& contexts) {
        Tensor const other = others.empty() ? Tensor() : others[i].second;
        return layer == layers[i].first ? with_head(contexts, other, head, heads) : contexts;
      }};
      row.push_back(loss_of(model, tokens, &observer) - whole);
    }
  }
  return changes;
}

Figure figure_of(std::vector<std::vector<double>> const& changes, LayerContexts const& layers, std::string const& title) {
  Figure figure{.name = "heads", .title = title, .caption = title};
  std::vector<std::string> rows, columns;
  for (auto const& layer : layers) rows.push_back(layer.first);
  for (std::size_t head = 0; head < changes.front().size(); ++head) columns.push_back(fmt::format("{}", head));
  Panel panel{.title = title, .x = axis_of_names(columns, "head"), .y = axis_of_rows(rows)};
  panel.cells = Cells{.columns = columns.size(), .sharp = true};
  double most = 1e-12;
  for (auto const& row : changes)
    for (double const change : row) panel.cells->values.push_back(change), most = std::max(most, std::abs(change));
  figure.scales = {{.colours = {"#0072B2", "#FFFFFF", "#D55E00"}, .low = -most, .high = most}};  // lower, unchanged, higher
  figure.panels = {panel};
  return figure;
}

}  // namespace

void head_effects(Inspected const& subject, InspectOptions const& options, std::ostream& out) {
  auto const& run = subject.run;
  auto const* const stack = dynamic_cast<StackSettings const*>(run.settings.model.settings.get());
  NoGrad const quiet;
  if (stack == nullptr || !run.model->decode({}, {}))
    throw ConfigError("--heads",
                      fmt::format("{}, of kind {}, predicts no next token by attention", run.path.string(), run.settings.model.kind));
  Tensor const tokens = subject.batch["inputs"];
  if (tokens.size(1) < 2) throw ConfigError("--text", "holds one token, after which nothing is predicted");
  LayerContexts const layers = contexts_of(*run.model, tokens);
  LayerContexts others;
  if (options.from) {
    Tensor const given = subject.tokens_of(*options.from, "--from");
    if (given.size(1) != tokens.size(1))
      throw ConfigError("--from", fmt::format("is {} tokens long, --text {}: outputs of one stand in the place of the other's",
                                              given.size(1), tokens.size(1)));
    others = contexts_of(*run.model, given);
  }
  auto const changes = changes_of(*run.model, tokens, layers, others, stack->heads);
  std::string const title =
      options.from ? "loss with a head's outputs from the other text, less the loss (nat)" : "loss without a head, less the loss (nat)";
  std::vector<std::vector<std::string>> rows{{"layer"}};
  for (Index head = 0; head < stack->heads; ++head) rows[0].push_back(fmt::format("head {}", head));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto& row = rows.emplace_back(std::vector{layers[i].first});
    for (double const change : changes[i]) row.push_back(fmt::format("{:+.4f}", change));
  }
  out << fmt::format("loss {:.4f} nat a token; {}:\n{}", loss_of(*run.model, tokens, nullptr), title, table(rows));
  if (options.picture.empty()) return;
  write_figures(options.picture, {figure_of(changes, layers, title)}, title);
  out << fmt::format("drawn in {}\n", options.picture.string());
}

}  // namespace heed
