#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autograd/random.hpp"
#include "experiments/data/open.hpp"

namespace heed {

/// A sequence to be written by a task: initially blanks without targets. Both have the model's context as length.
struct TaskRow {
  std::span<Index> inputs;
  std::span<Index> targets;
  bool held_out;           ///< whether it belongs to the validation data
  Index number = 0;        ///< of the sequence, from 0, over all batches of its part
  std::uint64_t seed = 1;  ///< the run's, which held-out sequences do not depend on otherwise
};

/// What a task's sequences need and offer.
struct TaskSizes {
  Index tokens;                                             ///< token ids, the blank included
  Index shortest_context;                                   ///< that a sequence fits into
  Index answers;                                            ///< possible answers, for the chance level
  Index most_held_out = std::numeric_limits<Index>::max();  ///< different held-out sequences
};

/// A synthetic task: settings, and how one sequence is drawn. A new task is a struct with `Declared<DataKind> const
/// copy_data{task_kind<Copy>("copy", "…")};` beside it; batches, splits and accuracies come from open_task().
struct Task : Settings {
  static constexpr Index blank = 0;  ///< the token of empty positions
  Index validation = 1'000;

  /// The task's own keys: length, vocabulary, difficulty.
  virtual std::vector<Field> keys() = 0;
  virtual TaskSizes sizes() const = 0;
  /// The sums of −log P over a sequence's targets by predictors that are known, by name: {"order 1", 12.3}; the same names for all.
  virtual std::vector<std::pair<std::string, double>> known_losses(TaskRow const&) const { return {}; }
  /// Writes a sequence of at least shortest_context blanks; all choices are drawn from `draws`.
  virtual void write(TaskRow const& row, Stream const& draws) const = 0;

  std::vector<Field> fields() final;
};

/// The sequences of a task. Only answers have targets, so that loss and accuracy are those of the answers. References are the loss of
/// guessing, ln answers, and the known predictors' losses on the sequences of an evaluation.
std::unique_ptr<Dataset> open_task(std::unique_ptr<Task> task, DataContext const& context);

template <class T>
DataKind task_kind(std::string const& name, std::string const& help) {
  return data_kind<T>(name, help, [](T const& task, DataContext const& context) { return open_task(std::make_unique<T>(task), context); });
}

/// The integers and switches of settings, by name, where set.
nlohmann::json values_of(Settings& settings);

/// Draw i as an integer in 0 … n − 1.
Index draw_number(Stream const& stream, std::size_t i, Index n);
/// The index of the share that `left`, from 0 to their sum, falls into.
Index draw_share(std::span<double const> shares, double left);
/// Where i of n comes in an order of its own for each stream: (a·i + c) mod n, a without a common divisor, a permutation without a table.
Index reordered(Index i, Index n, Stream const& draws);
/// `count` distinct integers of 0 … n − 1 in random order.
std::vector<Index> different_numbers(Stream const& stream, Index count, Index n);

}  // namespace heed
