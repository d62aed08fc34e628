// a + b modulo p: the whole table, of which a part trains and the rest is held out (Power et al. 2022, "Grokking"). p = 7:
//
//     inputs    3 5 =
//     targets   · · 1
//
// The seed splits the table once; training goes through its part in a new order each epoch, so that train.batch of its size is the full
// batch. validation: rows that are held out at most.

#include <algorithm>

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct ModularAddition : Task {
  Index modulus = 113;
  double training = 0.3;

  std::vector<Field> keys() override {
    return {field(&modulus, "modulus", "p, the number of residues").in(2, 1000),
            field(&training, "training", "share of the p² sums that trains; the seed chooses them, and all others at most are held out")
                .in(0.001, 0.999)};
  }
  TaskSizes sizes() const override {
    return {.tokens = 1 + modulus + 1, .shortest_context = 3, .answers = modulus, .most_held_out = modulus * modulus - trained()};
  }

  void write(TaskRow const& row, Stream const&) const override {
    Index const part = trained(), epoch = row.number / part;
    Stream const draws = Stream(row.seed, "modular_addition.epoch").child(static_cast<std::uint64_t>(epoch));
    Index const index = row.held_out ? part + row.number : reordered(row.number % part, part, draws);
    Index const sum = at(table(row.seed), index), a = sum / modulus, b = sum % modulus;
    row.inputs[0] = 1 + a, row.inputs[1] = 1 + b, row.inputs[2] = 1 + modulus;
    row.targets[2] = 1 + (a + b) % modulus;
  }

 private:
  /// Number of sums that train.
  Index trained() const {
    Index const all = modulus * modulus;
    return std::clamp<Index>(static_cast<Index>(training * static_cast<double>(all)), 1, all - 1);
  }
  /// The sums in the order of a seed.
  std::vector<Index> const& table(std::uint64_t seed) const {
    if (order_.empty() || seed_ != seed)
      order_ = different_numbers(Stream(seed, "modular_addition"), modulus * modulus, modulus * modulus), seed_ = seed;
    return order_;
  }
  mutable std::vector<Index> order_;
  mutable std::uint64_t seed_ = 0;
};

Declared<DataKind> const modular_addition_data{task_kind<ModularAddition>("modular_addition", "a + b modulo p, from a part of the table")};

}  // namespace

}  // namespace heed
