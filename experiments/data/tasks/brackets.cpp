// Balanced brackets of several kinds (the language Dyck-k): after a bracket that closes, which one closes what is still open?
//
//     inputs    ( [ ( ) ] [ ] )
//     targets   · · · ] ) · ) ·          nothing is open at the end
//
// After an opening bracket the answer is its own other half, so that does not count. What is asked for may have been opened long ago, and
// depth is what a model without a stack has to keep in its positions (Hahn 2020; Yao et al. 2021).
//
// Token 0 is a blank; with k kinds, 1 … k open and k + 1 … 2k close.

#include <fmt/format.h>

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct Brackets : Task {
  Index kinds = 4;
  Index length = 32;
  Index depth = 8;

  std::vector<Field> keys() override {
    return {field(&kinds, "kinds", "kinds of brackets").in(2, 1e6),
            field(&length, "length", "brackets of a sequence, an even number; model.context ≥ length").in(4, 1e6),
            field(&depth, "depth", "largest nesting depth").in(2, 1e6)};
  }

  std::optional<std::string> contradiction() override {
    if (length % 2 == 0) return std::nullopt;
    return fmt::format("length: {} brackets cannot all be closed, the number must be even", length);
  }

  TaskSizes sizes() const override { return {.tokens = 1 + 2 * kinds, .shortest_context = length, .answers = kinds}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    std::vector<Index> open;
    auto const size = static_cast<std::size_t>(length);
    for (std::size_t i = 0; i < size; ++i) {
      // Either with equal probability, where both are possible.
      bool const full = open.size() == static_cast<std::size_t>(depth) || open.size() == size - i;
      bool const opens = open.empty() || (!full && draws.child("opens").below(i, 2) == 0);
      if (opens) {
        open.push_back(1 + draw_number(draws.child("kind"), i, kinds));
        row.inputs[i] = open.back();
        continue;
      }
      row.inputs[i] = open.back() + kinds;
      open.pop_back();
      if (!open.empty()) row.targets[i] = open.back() + kinds;
    }
  }
};

Declared<DataKind> const brackets_data{task_kind<Brackets>("brackets", "balanced brackets of several kinds: predict each closing bracket")};

}  // namespace

}  // namespace heed
