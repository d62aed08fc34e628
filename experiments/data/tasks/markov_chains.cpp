// A Markov chain of its own in every sequence, whose rows of transitions are drawn uniformly from the simplex (Edelman et al. 2024, "The
// evolution of statistical induction heads"). Three states:
//
//     inputs    a c b b a c
//     targets   c b b a c a      the next state
//
// Beside the loss: that of the best prediction from the pair counts so far, (n_xy + 1)/(n_x + k) ("order 1": no model does better), and of
// the counts of single states, (n_y + 1)/(t + k) ("order 0").

#include <cmath>
#include <numeric>

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct MarkovChains : Task {
  Index states = 3, length = 32;

  std::vector<Field> keys() override {
    return {field(&states, "states", "number of states").in(2, 1000),
            field(&length, "length", "states of a sequence; model.context ≥ length").in(2, 1e6)};
  }
  TaskSizes sizes() const override { return {.tokens = 1 + states, .shortest_context = length, .answers = states}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    std::vector<double> transitions;  // exponential numbers, whose shares are uniform on the simplex
    for (Index i = 0; i < states * states; ++i)
      transitions.push_back(-std::log1p(-draws.child("transitions").uniform(static_cast<std::uint64_t>(i))));
    Index state = draw_number(draws.child("start"), 0, states);
    for (std::size_t t = 0; t < static_cast<std::size_t>(length); ++t) {
      auto const from = std::span(transitions).subspan(static_cast<std::size_t>(state * states), static_cast<std::size_t>(states));
      row.inputs[t] = 1 + state;
      state = draw_share(from, draws.child("steps").uniform(t) * std::accumulate(from.begin(), from.end(), 0.0));
      row.targets[t] = 1 + state;
    }
  }

  std::vector<std::pair<std::string, double>> known_losses(TaskRow const& row) const override {
    double order_0 = 0, order_1 = 0;
    auto const k = static_cast<double>(states);
    std::vector<double> single(static_cast<std::size_t>(states)), of(single), pairs(static_cast<std::size_t>(states * states));
    for (std::size_t t = 0; t < row.targets.size() && row.targets[t] > 0; ++t) {
      Index const x = row.inputs[t] - 1, y = row.targets[t] - 1;
      ++at(single, x);
      order_0 -= std::log((at(single, y) + 1) / (static_cast<double>(t + 1) + k));
      order_1 -= std::log((at(pairs, x * states + y) + 1) / (at(of, x) + k));
      ++at(pairs, x * states + y), ++at(of, x);
    }
    return {{"order 0", order_0}, {"order 1", order_1}};
  }
};

Declared<DataKind> const markov_data{task_kind<MarkovChains>("markov_chains", "the next state of a chain whose transitions are its own")};

}  // namespace

}  // namespace heed
