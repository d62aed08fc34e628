
#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/pass.hpp"

namespace heed {

namespace {

/// The estimator that alone has a key; "": all have it.
std::string owner_of(std::string const& key) {
  if (key.starts_with("temperature")) return "gumbel";
  return key == "baseline" || key == "entropy" || key == "expectation_rate" || key == "reward_weight" ? "reinforce" : "";
}

}  // namespace

std::vector<Field> EstimatorSettings::fields() {
  return {
      field(&estimator, "estimator", "gradient estimator of hard attention")
          .one_of({"reinforce", "straight_through", "gumbel", "enumerate", "marginal"}),
      field(&baseline, "baseline", "reinforce: baseline that is subtracted from rewards")
          .one_of({"none", "moving_average", "self_critic", "leave_one_out"}),
      field(&samples, "samples", "hard attention: number of sampled passes over a batch, averaged").in(1, 1024),
      field(&entropy, "entropy", "reinforce: weight of the entropy bonus").in(0, 1e9),
      field(&expectation_rate, "expectation_rate", "reinforce: probability that a batch uses the expected context instead of samples")
          .in(0, 1),
      field(&reward_weight, "reward_weight", "reinforce: factor on rewards").in(0, 1e9),
      field(&temperature, "temperature", "gumbel: initial temperature of the softmax").between(0, 1e9),
      field(&temperature_decay, "temperature_decay", "gumbel: decay rate r of temperature · e^(-r step)").in(0, 1e9),
      field(&temperature_least, "temperature_least", "gumbel: lowest temperature of the decay").between(0, 1e9),
      field(&evaluate, "evaluate", "hard attention: how the context is read in evaluation").one_of({"argmax", "sample", "expectation"})};
}

std::optional<std::string> EstimatorSettings::contradiction_of(std::string const& read) const {
  EstimatorSettings own = *this, usual;
  for (auto const& key : differing_fields(own.fields(), usual.fields())) {
    if (read != "hard") return fmt::format("{}: applies only to the read 'hard', not to '{}'", key, read);
    if (auto const owner = owner_of(key); !owner.empty() && owner != estimator)
      return fmt::format("{}: applies only to the estimator {}, not to {}", key, owner, estimator);
  }
  if (read != "hard") return std::nullopt;
  if (estimator == "reinforce" && baseline == "leave_one_out" && samples < 2)
    return fmt::format("samples: leave_one_out compares each sample with the others: it needs at least 2, not {}", samples);
  if (sums_over_choices() && samples > 1)
    return fmt::format("samples: {} sums over every choice; it takes no {} samples", estimator, samples);
  return std::nullopt;
}

double EstimatorSettings::temperature_at(Index step) const {
  return std::min(temperature, std::max(temperature_least, temperature * std::exp(-temperature_decay * static_cast<double>(step))));
}

std::size_t choices_made(Pass const& pass) { return pass.watching.hard_choices != nullptr ? pass.watching.hard_choices->made.size() : 0; }

void set_reach(Pass const& pass, std::size_t first, HardChoices::Reach reach) {
  for (std::size_t i = first; i < choices_made(pass); ++i) pass.watching.hard_choices->made[i].reach = reach;
}

Tensor recomputed_block(std::function<Tensor(std::vector<Tensor> const& inputs, Pass const& pass)> const& f,
                        std::vector<Tensor> const& inputs, Pass const& pass) {
  if (!pass.training.recompute) return f(inputs, pass);
  if (pass.watching.hard_choices == nullptr) return checkpoint([f, pass](std::vector<Tensor> const& in) { return f(in, pass); }, inputs);
  bool const given =
      pass.watching.hard_choices->mode == HardChoices::Mode::given || pass.watching.hard_choices->mode == HardChoices::Mode::one;
  if (given) throw Error("estimator: enumerate and marginal keep the whole pass; train.recompute cannot be true");

  // One tensor comes out of checkpoint(): the choices travel as further columns of the result, [B, n, H] each.
  struct ChoiceColumns {
    Index heads;
    HardChoices::Reach reach;
  };
  auto const layout = std::make_shared<std::vector<ChoiceColumns>>();
  auto const packed = [f, pass, layout, mode = pass.watching.hard_choices->mode](std::vector<Tensor> const& in) {
    HardChoices choices{.mode = mode, .made = {}, .codes = {}};
    Pass inner = pass;
    inner.watching.hard_choices = &choices;
    std::vector<Tensor> columns{f(in, inner)};
    layout->clear();
    for (auto const& made : choices.made) {
      layout->push_back({made.probability.size(1), made.reach});
      columns.push_back(transpose(made.probability));
      columns.push_back(transpose(made.entropy));
    }
    return concatenate(columns, -1);
  };
  Tensor const all = checkpoint(packed, inputs);

  Index end = all.size(-1);
  for (auto const& columns : *layout) end -= 2 * columns.heads;
  Tensor const y = slice(all, -1, 0, end);
  for (auto const& [heads, reach] : *layout) {
    Tensor const probability = transpose(slice(all, -1, end, end + heads));
    Tensor const entropy = transpose(slice(all, -1, end + heads, end + 2 * heads));
    pass.watching.hard_choices->made.push_back({probability, entropy, reach});
    end += 2 * heads;
  }
  return y;
}

}  // namespace heed
