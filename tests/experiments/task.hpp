#pragma once

#include "experiments/data/open.hpp"
#include "tests/nn/choice.hpp"

namespace heed::test {

/// What `data: {kind: NAME, …}` opens.
inline std::unique_ptr<Dataset> task(std::string const& name, Keys const& keys = {}, std::uint64_t seed = 1) {
  return open_dataset(chosen(task_choice(), name, keys), {.config_folder = {}, .data_folder = {}, .seed = seed, .quiet = true});
}

/// A row of a batch.
struct TaskRow {
  std::vector<Index> inputs, targets;
  bool operator==(TaskRow const&) const = default;
};
inline std::vector<TaskRow> rows_of(Batch const& batch) {
  auto const length = batch["inputs"].size(1);
  auto const row = [&](Tensor const& all, Index number) {
    auto const values = all.data<std::int64_t>().subspan(static_cast<std::size_t>(number * length), static_cast<std::size_t>(length));
    return std::vector<Index>(values.begin(), values.end());
  };
  std::vector<TaskRow> rows;
  for (Index number = 0; number < batch["inputs"].size(0); ++number)
    rows.push_back({row(batch["inputs"], number), row(batch["targets"], number)});
  return rows;
}

}  // namespace heed::test
