// c_i = v_J with J ~ a_i, one draw a head and query (Xu et al. 2015, section 4.1). While evaluating (`evaluate`): argmax, the most likely
// key; sample; or expectation, soft attention. Gradients by `estimator`: of reinforce, enumerate and marginal, which see the choices
// and their probabilities from outside (nn/estimator.hpp); straight_through, as if c_i were Σ_j a_ij v_j (Bengio et al. 2013); gumbel, as
// if it were Σ_j y_ij v_j with y_i = softmax((log a_i + g_i)/τ), g Gumbel noise, whose largest is at J (Jang et al. 2017).

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/operations/elementwise.hpp"
#include "autograd/operations/index.hpp"
#include "autograd/operations/reduce.hpp"
#include "autograd/operations/shape.hpp"
#include "autograd/operations/softmax.hpp"
#include "autograd/parallel.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

/// For each row of weights [B, H, n, m] the stream that it draws from, of its sequence and head, and which draw, by the query's position.
struct Draws {
  Pass const& pass;
  Stream stream;
  std::int64_t offset;
};
template <class F>
void for_each_row(Tensor const& weights, Draws const& draws, F const& f) {
  std::int64_t const heads = weights.size(1), queries = weights.size(2);
  double const cost = 4 * static_cast<double>(weights.size(3));
  parallel_for(weights.size(0) * weights.size(1) * queries, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t const head = row / queries;
      std::uint64_t const number =
          draws.pass.sequence(head / heads) * static_cast<std::uint64_t>(heads) + static_cast<std::uint64_t>(head % heads);
      f(row, draws.stream.child(number), static_cast<std::uint64_t>(draws.offset + row % queries));
    }
  });
}

Shape without_last(Tensor const& x) { return Shape(std::span(x.shape().begin(), x.rank() - 1)); }

/// J ~ a_i by inversion: the first key where the running sum passes u · Σ_j a_ij; 0 where there is none to choose. int64 [B, H, n].
Tensor draw(Tensor const& weights, Draws const& draws) {
  Tensor chosen(without_last(weights), DType::int64);
  auto const out = chosen.mutable_data<std::int64_t>();
  std::int64_t const keys = weights.size(-1);
  Tensor const reals = weights.detach().to(DType::float64);
  double const* const a = reals.data<double>().data();
  for_each_row(weights, draws, [&](std::int64_t row, Stream const& of_head, std::uint64_t position) {
    double const* const w = a + row * keys;
    double total = 0;
    for (std::int64_t j = 0; j < keys; ++j) total += w[j];
    double const threshold = of_head.uniform(position) * total;
    std::int64_t last = 0;
    double sum = 0;
    for (std::int64_t j = 0; j < keys && sum <= threshold; ++j) {
      sum += w[j];
      if (w[j] > 0) last = j;
    }
    out[static_cast<std::size_t>(row)] = last;
  });
  return chosen;
}

/// −log(−log u), [B, H, n, m].
Tensor gumbel_noise(Tensor const& weights, Draws const& draws) {
  Tensor noise(weights.shape(), DType::float64);
  double* const out = noise.mutable_data<double>().data();
  std::int64_t const keys = weights.size(-1);
  for_each_row(weights, draws, [&](std::int64_t row, Stream const& of_head, std::uint64_t position) {
    Stream const of_query = of_head.child(position);
    for (std::int64_t j = 0; j < keys; ++j) {
      double const u = of_query.uniform(static_cast<std::uint64_t>(j));
      out[row * keys + j] = -std::log(-std::log(u + 0x1p-54));
    }
  });
  return noise.to(weights.dtype());
}

/// [B, H, n, 1]: 1 for a query that sees a key.
Tensor sees(Tensor const& weights) { return greater(sum(weights.detach(), {-1}, true), Tensor::scalar(0, weights.dtype())); }

/// 1 at J, else 0; zeros for a query that sees no key.
Tensor at_choice(Tensor const& chosen, Tensor const& weights) { return one_hot(chosen, weights.size(-1), weights.dtype()) * sees(weights); }

/// The next digits of each sequence's code: as many values as there are keys, before padding.
Tensor next_digits(Tensor const& weights, Visibility const& visibility, Choices& choices) {
  std::int64_t const rows = weights.size(0);
  std::int64_t const keys = weights.size(-1);
  if (choices.codes.size() != static_cast<std::size_t>(rows))
    throw Error(fmt::format("hard: {} codes of choices for {} sequences", choices.codes.size(), rows));
  Tensor chosen(without_last(weights), DType::int64);
  auto const out = chosen.mutable_data<std::int64_t>();
  for (std::int64_t h = 0; h < weights.size(1); ++h) {
    for (std::int64_t i = 0; i < weights.size(2); ++i) {
      std::int64_t const radix = visibility.causal ? std::min(visibility.offset + i + 1, keys) : keys;
      for (std::int64_t b = 0; b < rows; ++b) {
        std::int64_t& code = choices.codes[static_cast<std::size_t>(b)];
        out[static_cast<std::size_t>((b * weights.size(1) + h) * weights.size(2) + i)] = code % radix;
        code /= radix;
      }
      choices.combinations *= static_cast<double>(radix);
    }
  }
  return chosen;
}

/// Each sequence's code, at every query.
Tensor same_everywhere(Tensor const& weights, Choices& choices) {
  choices.combinations = static_cast<double>(weights.size(-1));
  Tensor const codes = Tensor::of(choices.codes, {std::ssize(choices.codes), 1, 1});
  return expand(codes, without_last(weights));
}

/// a_J of each choice. A query that sees no key has one choice, which is to read nothing: J = 0.
Tensor probability_of(Tensor const& chosen, Tensor const& weights) {
  Tensor const a = squeeze(gather(weights, -1, unsqueeze(chosen, -1)), -1);
  Tensor const reads_nothing = squeeze(1 - sees(weights), -1) * equal(chosen.to(weights.dtype()), Tensor::scalar(0, weights.dtype()));
  return a + reads_nothing;
}

Tensor entropy_of(Tensor const& weights) {
  Tensor const none = less_equal(weights.detach(), Tensor::scalar(0, weights.dtype()));
  return -sum(weights * log(masked_fill(weights, none, 1)), {-1});
}

struct Hard : Read {
  explicit Hard(EstimatorSettings const& e) : settings(e) {}

  Tensor operator()(Tensor const& weights, Visibility const& visibility, Pass const& pass, std::string const& place) const override {
    Choices* const choices = pass.choices;
    if (choices != nullptr && choices->mode == Choices::Mode::expectation) return weights;
    bool const one = choices != nullptr && choices->mode == Choices::Mode::one;
    bool const given = one || (choices != nullptr && choices->mode == Choices::Mode::given);
    Draws const draws{pass, (pass.noise ? *pass.noise : pass.choosing).child(place), visibility.offset};
    if (!given && !pass.noise) return evaluated(weights, draws);
    if (!given && settings.estimator == "gumbel") return gumbel(weights, draws, settings.temperature_at(pass.step));

    Tensor const chosen = one     ? same_everywhere(weights, *choices)
                          : given ? next_digits(weights, visibility, *choices)
                                  : draw(weights, draws);
    Tensor const read = at_choice(chosen, weights);
    if (!given && settings.estimator == "straight_through") return read + (weights - stop_gradient(weights));
    if (choices != nullptr) {
      auto const reach = visibility.causal ? Choices::Reach::later : Choices::Reach::sequence;
      choices->made.push_back({probability_of(chosen, weights), entropy_of(weights), reach});
    }
    return read;
  }

  Tensor evaluated(Tensor const& weights, Draws const& draws) const {
    if (settings.evaluate == "expectation") return weights;
    return at_choice(settings.evaluate == "argmax" ? argmax(weights, -1) : draw(weights, draws), weights);
  }

  static Tensor gumbel(Tensor const& weights, Draws const& draws, double temperature) {
    Tensor const possible = greater(weights.detach(), Tensor::scalar(0, weights.dtype()));
    Tensor const logits = log(masked_fill(weights, 1 - possible, 1)) + gumbel_noise(weights, draws);
    Tensor const soft = masked_softmax(scale(logits, 1 / temperature), possible);
    return at_choice(argmax(soft, -1), weights) + (soft - stop_gradient(soft));
  }

  EstimatorSettings settings;
};

Declared<Read> const declared{
    {"hard", "v_J, J ~ a_i", "Xu et al. 2015", "n m d_v", "by an estimator of the expected loss's gradient",
     [](Scope const&, AttentionSettings const& settings, HeadShape const&) { return std::make_unique<Hard>(settings.estimator); }}};

}  // namespace

}  // namespace heed
