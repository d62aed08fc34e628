#include "experiments/validation.hpp"

#include <algorithm>

#include "autograd/operations.hpp"
#include "experiments/metric.hpp"

namespace heed {

namespace {

/// A metric of the weights, and of their running average where train.ema asks for one.
struct DeclaredValidation {
  DeclaredValidation(std::string const& name, std::string const& unit, Better better, std::string const& help)
      : plain({"validation." + name, unit, better, help}), ema({"validation.ema." + name, unit, better, help + "; of averaged weights"}) {}
  DeclaredMetric plain, ema;
};
DeclaredValidation const loss_declared{"loss", "nat", Better::lower, "mean cross entropy of the validation targets"};
DeclaredValidation const accuracy_declared{"accuracy", "", Better::higher, "share of the targets that are the most probable token"};
DeclaredValidation const exact_declared{"exact", "", Better::higher, "of tasks: share of the rows whose targets all are"};
DeclaredValidation const groups_declared{"accuracy.*", "", Better::higher,
                                         "the same share within a group of targets (grammar: of verbs, by their distance)"};

}  // namespace

Validation::Validation(Dataset const& data)
    : groups_(data.groups()), poses_task_(data.gives()["targets"].made_by.empty()), by_group_(groups_.names.size()) {}

void Validation::add(Tensor const& logits, Batch const& batch) {
  std::vector<std::int64_t> best;
  add_places(0, logits.viewed({batch["targets"].elements(), logits.size(-1)}), batch, best);
  add_rows(best, batch["targets"]);
}

void Validation::add(Model const& model, Batch const& batch, Pass const& pass) {
  std::vector<std::int64_t> best;
  model.each_logits(batch, pass, [&](std::int64_t first, Tensor const& logits) { add_places(first, logits, batch, best); });
  add_rows(best, batch["targets"]);
}

void Validation::add_places(std::int64_t first, Tensor const& logits, Batch const& batch, std::vector<std::int64_t>& best) {
  Tensor const targets = batch["targets"].viewed({batch["targets"].elements()}).rows(first, logits.size(0));
  loss_ += cross_entropy(logits, targets, 0, -1, 1.0).item();
  Tensor const found = argmax(logits, -1);
  best.insert(best.end(), found.data<std::int64_t>().begin(), found.data<std::int64_t>().end());
  if (batch.has("groups")) add_groups(first, logits, batch);
}

void Validation::add_groups(std::int64_t first, Tensor const& logits, Batch const& batch) {
  auto const here = [&](Tensor const& all) { return all.viewed({all.elements()}).rows(first, logits.size(0)).data<std::int64_t>(); };
  auto const group = here(batch["groups"]), wanted = here(batch["targets"]);
  auto const categories = std::span(groups_.categories);
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i] < 0) continue;
    auto const row = logits.rows(static_cast<std::int64_t>(i), 1).to_vector();
    std::int64_t best = -1;
    for (std::size_t token = 0; token < row.size(); ++token)
      if (categories[token] >= 0 && (best < 0 || row[token] > row[static_cast<std::size_t>(best)])) best = static_cast<std::int64_t>(token);
    Share& share = by_group_[static_cast<std::size_t>(group[i])];
    share.all += 1;
    share.right += categories[static_cast<std::size_t>(best)] == categories[static_cast<std::size_t>(wanted[i])] ? 1 : 0;
  }
}

void Validation::add_rows(std::vector<std::int64_t> const& best, Tensor const& targets) {
  targets_ += counted(targets);
  auto const wanted = targets.data<std::int64_t>();
  auto const length = static_cast<std::size_t>(targets.size(1));
  for (std::size_t begin = 0; begin < wanted.size(); begin += length) {
    Share row;
    for (std::size_t i = begin; i < begin + length; ++i) {
      row.all += wanted[i] >= 0 ? 1 : 0;
      row.right += best[i] == wanted[i] ? 1 : 0;  // never so for −1
    }
    right_ += row.right;
    rows_.all += row.all > 0 ? 1 : 0;
    rows_.right += row.all > 0 && row.right == row.all ? 1 : 0;
  }
}

void Validation::write(Row& row, std::string const& prefix) const {
  row.set(prefix + ".loss", loss());
  row.set(prefix + ".accuracy", right_ / targets_);
  if (poses_task_) row.set(prefix + ".exact", rows_.right / rows_.all);
  for (std::size_t i = 0; i < by_group_.size(); ++i)
    if (by_group_[i].all > 0) row.set(prefix + ".accuracy." + groups_.names[i], by_group_[i].right / by_group_[i].all);
}

}  // namespace heed
