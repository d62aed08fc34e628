#pragma once

#include <string>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/record.hpp"
#include "nn/model.hpp"

namespace heed {

/// What a model's logits are worth on validation data, gathered batch by batch.
class Validation {
 public:
  explicit Validation(Dataset const& data);
  /// logits [B, T, V].
  void add(Tensor const& logits, Batch const& batch);
  /// Those of a pass, which are never held whole where they are many.
  void add(Model const& model, Batch const& batch, Pass const& pass);

  /// Mean cross entropy of the targets that count.
  double loss() const { return loss_ / targets_; }
  /// Sets PREFIX.loss and PREFIX.accuracy, the share of targets that are the most probable token; where the data pose a task,
  /// PREFIX.exact, the share of rows whose targets all are; and for each group of targets that occurred PREFIX.accuracy.NAME.
  void write(Row& row, std::string const& prefix) const;

 private:
  struct Share {
    double right = 0, all = 0;
  };
  /// logits [n, V] of the places first … first + n − 1 of all rows; what is most probable there is added to `best`.
  void add_places(std::int64_t first, Tensor const& logits, Batch const& batch, std::vector<std::int64_t>& best);
  void add_groups(std::int64_t first, Tensor const& logits, Batch const& batch);
  void add_rows(std::vector<std::int64_t> const& best, Tensor const& targets);

  TargetGroups groups_;
  bool poses_task_;
  double loss_ = 0, targets_ = 0, right_ = 0;
  Share rows_;
  std::vector<Share> by_group_;
};

}  // namespace heed
