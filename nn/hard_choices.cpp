#include "nn/hard_choices.hpp"

#include <memory>

#include "autograd/error.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/pass.hpp"

namespace heed {

std::size_t choices_made(Pass const& pass) { return pass.watching.hard_choices != nullptr ? pass.watching.hard_choices->made.size() : 0; }

void set_reach(Pass const& pass, std::size_t first, HardChoices::Reach reach) {
  for (std::size_t i = first; i < choices_made(pass); ++i) pass.watching.hard_choices->made[i].reach = reach;
}

Tensor recomputed(std::function<Tensor(std::vector<Tensor> const& inputs, Pass const& pass)> const& f, std::vector<Tensor> const& inputs,
                  Pass const& pass) {
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
