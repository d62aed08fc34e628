// A bigram language with triggers, behind which the token before stands again (Guo et al. 2024, "Active-dormant attention heads"):
//
//     inputs    s b a t a c b t b
//     targets   b a t a c b t b …
//
// After tokens other than the trigger t the next one is drawn from a table of transitions, shares of U^(1/concentration), the same in all
// data; s begins every sequence. Where nothing is to be copied, a head has nothing to do. Tokens: 1 is s, 2 … triggers + 1 the triggers,
// the others follow. Beside the loss the best one possible ("exact").

#include <cmath>

#include <fmt/format.h>

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct BackCopy : Task {
  Index vocabulary = 64, triggers = 3;
  double concentration = 0.1;

  std::vector<Field> keys() override {
    return {
        field(&vocabulary, "vocabulary", "number of tokens, triggers included").in(3, 10000),
        field(&triggers, "triggers", "number of triggers").in(1, 9999),
        field(&concentration, "concentration", "c of transitions' shares U^(1/c), U uniform: smaller is more predictable").in(0.01, 100)};
  }
  std::optional<std::string> contradiction() override {
    if (triggers + 2 > vocabulary) return fmt::format("triggers: {} leave no two other tokens of {}", triggers, vocabulary);
    return std::nullopt;
  }
  TaskSizes sizes() const override { return {.tokens = 2 + vocabulary, .shortest_context = 3, .answers = vocabulary}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    row.inputs[0] = 1;
    Index before = 1;
    for (std::size_t t = 0; t < row.inputs.size(); ++t) {
      Index const now = row.inputs[t];
      Index const next = is_trigger(now) && before > 1 ? before : 2 + draw_share(of(now), draws.uniform(t));
      row.targets[t] = next;
      if (t + 1 < row.inputs.size()) row.inputs[t + 1] = next;
      before = now;
    }
  }

  std::vector<std::pair<std::string, double>> known_losses(TaskRow const& row) const override {
    double loss = 0;
    for (std::size_t t = 0; t < row.inputs.size() && row.inputs[t] > 0; ++t) {
      bool const copied = is_trigger(row.inputs[t]) && t > 0 && row.inputs[t - 1] > 1;
      if (!copied) loss -= std::log(at(of(row.inputs[t]), row.targets[t] - 2));
    }
    return {{"exact", loss}};
  }

 private:
  bool is_trigger(Index token) const { return token >= 2 && token < 2 + triggers; }
  /// The probabilities of the tokens 2, 3, … after a token.
  std::vector<double> const& of(Index token) const {
    if (transitions_.empty()) transitions_.resize(static_cast<std::size_t>(sizes().tokens));
    auto& row = at(transitions_, token);
    if (!row.empty()) return row;
    Stream const draws = Stream(0, "back_copy").child(static_cast<std::uint64_t>(token));
    double sum = 0;
    for (Index i = 0; i < vocabulary; ++i) {
      double const share = std::pow(1 - draws.uniform(static_cast<std::uint64_t>(i)), 1 / concentration);
      row.push_back(std::max(share, 1e-12));
      sum += row.back();
    }
    for (double& share : row) share /= sum;
    return row;
  }
  mutable std::vector<std::vector<double>> transitions_;
};

Declared<DataKind> const back_copy_data{
    task_kind<BackCopy>("back_copy", "a bigram language in which triggers repeat the token before them")};

}  // namespace

}  // namespace heed
