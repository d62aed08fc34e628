// c_i = v_J with J ~ a_i, one draw a head and query (Xu et al. 2015, section 4.1; autograd/attention/attention.hpp). While evaluating
// (`evaluate`): argmax, the most likely key; sample; or expectation, soft attention. Gradients by `estimator`: reinforce, enumerate and
// marginal see the choices and their probabilities from outside (nn/estimator.hpp); straight_through and gumbel are of the read itself.

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

/// The stream of each sequence and head; the position of a query says which draw.
std::vector<Stream> streams_of(Shape const& weights, Pass const& pass, std::string const& layer) {
  Stream const stream = (pass.training.noise ? *pass.training.noise : pass.decoding.choosing).child(layer);
  auto const heads = static_cast<std::uint64_t>(weights[1]);
  std::vector<Stream> streams;
  for (Index b = 0; b < weights[0]; ++b)
    for (std::uint64_t h = 0; h < heads; ++h) streams.push_back(stream.child(pass.sequence(b) * heads + h));
  return streams;
}

/// The next digits of each sequence's code: as many values as the query sees keys, of those before padding.
Tensor next_digits(Shape const& weights, Visibility const& visibility, HardChoices& choices) {
  Index const batch = weights[0], heads = weights[1], queries = weights[2], keys = weights[3];
  if (choices.codes.size() != static_cast<std::size_t>(batch))
    throw Error(fmt::format("hard: {} codes of choices for {} sequences", choices.codes.size(), batch));
  Visibility unpadded = visibility;
  unpadded.lengths = unpadded.query_lengths = {};
  Tensor chosen({batch, heads, queries}, DType::int64);
  auto const out = chosen.mutable_data<std::int64_t>();
  for (Index h = 0; h < heads; ++h) {
    for (Index i = 0; i < queries; ++i) {
      KeyRange const seen = unpadded.range(0, i, keys);
      Index const radix = seen.last - seen.first;
      for (Index b = 0; b < batch; ++b) {
        Index& code = at(choices.codes, b);
        at(out, (b * heads + h) * queries + i) = seen.first + code % radix;
        code /= radix;
      }
      choices.combinations *= static_cast<double>(radix);
    }
  }
  return chosen;
}

/// Each sequence's code, at every query.
Tensor same_everywhere(Shape const& weights, HardChoices& choices) {
  choices.combinations = static_cast<double>(weights[3]);
  return expand(Tensor::of(choices.codes, {std::ssize(choices.codes), 1, 1}), {weights[0], weights[1], weights[2]});
}

struct Hard : Read {
  using ChosenBy = HardRead::ChosenBy;

  Hard(Scope const&, AttentionSettings const& attention, HeadShape const&) : settings(attention.estimator) {}

  std::optional<HardRead> choice(Shape const& weights, Visibility const& visibility, Pass const& pass,
                                 std::string const& layer) const override {
    HardChoices* const choices = pass.watching.hard_choices;
    auto const mode = choices != nullptr ? choices->mode : HardChoices::Mode::sample;
    if (mode == HardChoices::Mode::expectation) return std::nullopt;
    HardRead read{.choice = ChosenBy::sampled, .streams = {}, .chosen = {}, .scored = choices != nullptr};
    if (mode == HardChoices::Mode::given) read.chosen = next_digits(weights, visibility, *choices);
    if (mode == HardChoices::Mode::one) read.chosen = same_everywhere(weights, *choices);
    if (read.chosen.defined()) return read;
    if (!pass.training.noise) {
      if (settings.evaluate == "expectation") return std::nullopt;
      read.scored = false;
      if (settings.evaluate == "argmax") read.choice = ChosenBy::largest;
    } else if (settings.estimator == "straight_through") {
      read.choice = ChosenBy::straight_through, read.scored = false;
    } else if (settings.estimator == "gumbel") {
      read.choice = ChosenBy::gumbel, read.scored = false;
      read.temperature = settings.temperature_at(pass.training.step);
    }
    if (read.choice != ChosenBy::largest) read.streams = streams_of(weights, pass, layer);
    return read;
  }

  EstimatorSettings settings;
};

Declared<ReadKind> const hard_read{{"hard", "v_J, J ~ a_i", "Xu et al. 2015", "n m d_v", "no; estimators of the gradient", makes<Hard>}};

}  // namespace

}  // namespace heed
