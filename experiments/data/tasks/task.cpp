#include "experiments/data/tasks/task.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "nn/model.hpp"

namespace heed {

std::vector<Field> Task::fields() {
  return extended(keys(), {field(&validation, "validation", "number of held-out sequences, the same for every seed").in(1, 1e6)});
}

namespace {

/// The length of each row up to its last token or target; blanks after that are padding. Undefined if no row has padding.
Tensor lengths_of(Batch const& batch) {
  Index const rows = batch.rows(), context = batch["inputs"].size(1);
  auto const inputs = batch["inputs"].data<std::int64_t>(), targets = batch["targets"].data<std::int64_t>();
  std::vector<Index> lengths(static_cast<std::size_t>(rows), 0);
  for (Index i = 0; i < rows * context; ++i)
    if (at(inputs, i) != Task::blank || at(targets, i) >= 0) at(lengths, i / context) = i % context + 1;
  return std::ranges::count(lengths, context) == rows ? Tensor() : Tensor::of(lengths, {rows});
}

class TaskDataset : public DrawnDataset {
 public:
  TaskDataset(std::unique_ptr<Task> task, DataContext const& context)
      : DrawnDataset(context.seed, context.kind + ".held_out", std::min(task->validation, task->sizes().most_held_out)),
        task_(std::move(task)),
        name_(context.kind) {
    facts_.signature = Signature::tokens(task_->sizes().tokens);
    facts_.bounds = {{"chance", std::log(static_cast<double>(task_->sizes().answers))}};
    facts_.description = values_of(*task_);
    facts_.description["task"] = name_;
    facts_.description["validation"] = held_out();
    facts_.description["tokens"] = vocabulary();
    facts_.known_losses = [this](Index count, Index length) { return known_losses(count, length); };
  }

 private:
  /// The mean losses of the task's known predictors on the first `rows` held-out sequences.
  std::vector<std::pair<std::string, double>> known_losses(Index rows, Index context) const {
    std::map<std::string, double> sums;
    double count = 0;
    for (Index row = 0; row < std::min(held_out(), rows); ++row) {
      Batch one = validation(row, 1, context);
      auto const inputs = one["inputs"].mutable_data<std::int64_t>(), targets = one["targets"].mutable_data<std::int64_t>();
      auto const losses = task_->known_losses({inputs, targets, true, row, seed()});
      if (losses.empty()) return {};
      for (auto const& [name, loss] : losses) sums[name] += loss;
      count += counted(one["targets"]);
    }
    for (auto& [name, loss] : sums) loss /= count;
    return {sums.begin(), sums.end()};
  }

  Batch rows(Stream const& draws, RowRange const& range, Index context, bool held_out) const override {
    auto const [first, count] = range;
    if (context < task_->sizes().shortest_context)
      throw Error(fmt::format("model.context: {} is too short for a sequence of {}; make it {} or more", context, name_,
                              task_->sizes().shortest_context));
    Batch result{{"inputs", Tensor::full({count, context}, Task::blank, DType::int64)},
                 {"targets", Tensor::full({count, context}, -1, DType::int64)}};
    auto const inputs = result["inputs"].mutable_data<std::int64_t>(), targets = result["targets"].mutable_data<std::int64_t>();
    auto const length = static_cast<std::size_t>(context);
    for (std::size_t row = 0; row < static_cast<std::size_t>(count); ++row) {
      auto const number = first + static_cast<Index>(row);
      task_->write({inputs.subspan(row * length, length), targets.subspan(row * length, length), held_out, number, seed()},
                   draws.child(static_cast<std::uint64_t>(number)));
    }
    result.set("lengths", lengths_of(result));
    return result;
  }

  std::unique_ptr<Task> task_;
  std::string name_;
};

}  // namespace

Choice task_choice() {
  return choice_of<DataKind>("", [](DataKind const& kind) { return std::dynamic_pointer_cast<Task>(kind.settings()) != nullptr; });
}

std::unique_ptr<Dataset> open_task(std::unique_ptr<Task> task, DataContext const& context) {
  return std::make_unique<TaskDataset>(std::move(task), context);
}

nlohmann::json values_of(Settings& settings) {
  auto result = nlohmann::json::object();
  for (auto const& field : settings.fields()) {
    if (auto* const given = std::get_if<Index*>(&field.target)) result[field.name] = **given;
    if (auto* const given = std::get_if<bool*>(&field.target)) result[field.name] = **given;
    if (auto* const given = std::get_if<std::optional<Index>*>(&field.target); given && **given) result[field.name] = ***given;
  }
  return result;
}

Index draw_number(Stream const& stream, std::size_t i, Index n) {
  return static_cast<Index>(stream.below(i, static_cast<std::uint64_t>(n)));
}

Index draw_share(std::span<double const> shares, double left) {
  Index chosen = 0;
  for (; chosen + 1 < std::ssize(shares) && left >= at(shares, chosen); ++chosen) left -= at(shares, chosen);
  return chosen;
}

Index reordered(Index i, Index n, Stream const& draws) {
  Index step = 1 + draw_number(draws, 0, n);
  while (std::gcd(step, n) != 1) ++step;
  return (step % n * i + draw_number(draws, 1, n)) % n;
}

std::vector<Index> different_numbers(Stream const& stream, Index count, Index n) {
  std::vector<Index> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  // The beginning of a Fisher–Yates shuffle.
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) std::swap(all[i], all[i + stream.below(i, all.size() - i)]);
  all.resize(static_cast<std::size_t>(count));
  return all;
}

}  // namespace heed
