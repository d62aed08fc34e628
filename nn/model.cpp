#include "nn/model.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

/// The targets of one class; the others do not count.
Tensor only(Tensor const& targets, Index of_class) {
  Tensor result = targets.clone();
  std::ranges::replace_if(
      result.mutable_data<std::int64_t>(), [&](auto target) { return target != of_class; }, -1);
  return result;
}

}  // namespace

std::unique_ptr<Decoding> Model::decode(Batch const&, Pass const&) const { return nullptr; }

Tensor LinearHead::logits() const { return weight.defined() ? linear(x, weight, bias) : x; }

double counted(Tensor const& targets, std::vector<double> const& of_classes) {
  auto const all = targets.data<std::int64_t>();
  if (!of_classes.empty()) {
    double sum = 0;
    for (auto const target : all) sum += target < 0 ? 0 : at(of_classes, target);
    return sum;
  }
  return static_cast<double>(all.size() - static_cast<std::size_t>(std::ranges::count(all, -1)));
}

Counts& Counts::operator+=(Counts const& more) {
  targets.resize(std::max(targets.size(), more.targets.size()), 0.0);
  for (std::size_t i = 0; i < more.targets.size(); ++i) targets[i] += more.targets[i];
  rows += more.rows;
  return *this;
}

Counts Model::counts(Batch const& batch) const {
  Counts counts{{}, static_cast<double>(batch.rows())};
  for (Term const& term : terms()) counts.targets.push_back(counted(batch[term.targets], term.of_classes));
  return counts;
}

Tensor Model::loss(Batch const& batch, Pass const& pass, double label_smoothing, Counts const& all) const {
  Counts const own = all.targets.empty() ? counts(batch) : all;
  Outcome const outcome = run(batch, pass);
  Tensor loss;
  auto const add = [&](Tensor const& part) { loss = loss.defined() ? loss + part : part; };
  for (std::size_t i = 0; i < outcome.predictions.size(); ++i) {
    auto const& [term, head] = outcome.predictions[i];
    auto const entropy = [&, &head = head, count = own.targets[i]](Tensor const& targets) {
      return head.weight.defined() ? linear_cross_entropy(head.x, head.weight, head.bias, targets, label_smoothing, -1, count)
                                   : cross_entropy(head.x, targets, label_smoothing, -1, count);
    };
    Tensor const& targets = batch[term.targets];
    if (term.of_classes.empty()) add(term.weight == 1 ? entropy(targets) : scale(entropy(targets), term.weight));
    for (Index c = 0; c < std::ssize(term.of_classes); ++c) add(scale(entropy(only(targets, c)), term.weight * at(term.of_classes, c)));
  }
  if (outcome.penalty.defined()) add(scale(outcome.penalty, static_cast<double>(batch.rows()) / own.rows));
  return loss;
}

void LinearHead::each_logits(std::function<void(Index, Tensor const&)> const& see) const {
  Tensor const rows = reshape(x, {-1, x.size(-1)});
  if (!weight.defined()) return see(0, rows);
  Index const all = rows.size(0), at_once = logits_at_once(all, weight.size(0), rows.dtype());
  for (Index first = 0; first < all; first += at_once)
    see(first, linear(slice(rows, 0, first, std::min(all, first + at_once)), weight, bias));
}

ModelKind const& model_kind(std::string const& name) { return Registry<ModelKind>::at(name, "model: there is no kind"); }

std::vector<InputPart> input_parts_of(Choice const& choice) { return model_kind(choice.kind).reads(*choice.settings); }

Choice model_choice() { return choice_of<ModelKind>(); }

std::unique_ptr<Model> make_model(Choice const& choice, Parameters& parameters, Signature const& data) {
  ModelKind const& kind = model_kind(choice.kind);
  for (InputPart const& part : kind.reads(*choice.settings)) {
    if (!data.has(part.name))
      throw Error(fmt::format("model.kind: {} reads '{}', which these data do not give; they give {}", kind.name, part.name, data.names()));
    if (part.picture && data[part.name].shape.empty())
      throw Error(fmt::format("model.kind: {} reads '{}' as a picture, which it is not in these data", kind.name, part.name));
  }
  return kind.make(parameters, *choice.settings, data);
}

}  // namespace heed
