#pragma once

#include "nn/attention/attention.hpp"
#include "tests/nn/models.hpp"
#include "tests/nn/reference.hpp"

/// Every combination of a declared score, align and position, and what it computes as a function of its inputs and parameters.
namespace heed::test {

template <class Step>
StepKind<Step> const& kind_of(std::string const& name) {
  return *Registry<StepKind<Step>>::find(name);
}

struct Variant {
  AttentionSettings settings;
  std::string position;

  std::string name() const {
    std::string const window = settings.flag("windowed") ? "" : ", no window";
    std::string const scale = settings.score == "scaled_dot" ? " (" + settings.scale + ")" : "";
    return fmt::format("{}{}, {}{}, {}", settings.score, scale, settings.align, window, position);
  }
};

/// The scores with their scales, the aligns with and without a window, and the positions, each with each.
inline std::vector<Variant> variants() {
  std::vector<std::pair<std::string, std::string>> scores;
  for (auto const& score : Registry<ScoreKind>::all()) {
    scores.emplace_back(score.name, "rsqrt");
    if (score.name != "scaled_dot") continue;
    for (char const* scale : {"inverse", "none", "learned", "0.3"}) scores.emplace_back(score.name, scale);
  }
  std::vector<std::pair<std::string, bool>> aligns;
  for (auto const& align : Registry<AlignKind>::all()) {
    aligns.emplace_back(align.name, true);
    if (align.name == "local_p") aligns.emplace_back(align.name, false);
  }
  std::vector<Variant> result;
  for (auto const& [score, scale] : scores)
    for (auto const& [align, windowed] : aligns)
      for (std::string const& position : Registry<PositionKind>::names()) {
        Variant variant{{}, position};
        variant.settings.score = score;
        variant.settings.scale = scale;
        variant.settings.align = align;
        variant.settings.set("windowed", windowed);
        result.push_back(variant);
      }
  return result;
}

inline Visibility seen(bool causal, std::vector<Index> const& lengths = {}, Index sees = 0) {
  Tensor const of_sequences = lengths.empty() ? Tensor() : Tensor::of(lengths, {std::ssize(lengths)});
  return {.causal = causal, .lengths = of_sequences, .offset = 0, .query_lengths = {}, .sees = sees};
}

struct Extents {
  Index batch, queries, keys, heads, width, value_width;
  Index context = 16;
};

/// A variant with parameters of its own.
class Subject {
 public:
  Subject(Variant const& variant, Extents const& e, Parameters parameters)
      : parameters_(std::move(parameters)),
        position_(make_position(variant.position, Scope(parameters_), {e.context, e.heads * e.width, e.heads})),
        attention_(Scope(parameters_), variant.settings, {e.heads, e.width, e.context}, 0, position_.get()) {}

  /// x [B, T, H·d], embeddings whose first stands at `offset`, as the attention receives them.
  Tensor positioned(Tensor const& x, Index offset) const { return attention_.rotated(position_->embed(x, offset), offset); }

  Tensor operator()(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility,
                    Pass const& pass = {}) const {
    return attention_(positioned(query, visibility.offset), positioned(key, 0), value, visibility, pass);
  }
  Tensor reference(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility, Pass const& pass = {}) const {
    return by_reference(attention_, positioned(query, visibility.offset), positioned(key, 0), value, visibility, pass);
  }
  Tensor weights(Tensor const& query, Tensor const& key, Visibility const& visibility) const {
    return weights_of(attention_, positioned(query, visibility.offset), positioned(key, 0), visibility);
  }
  std::vector<Tensor> kinks(Tensor const& query, Tensor const& key, Visibility const& visibility) const {
    return attention_.kinks(positioned(query, visibility.offset), positioned(key, 0), visibility);
  }
  Parameters const& parameters() const { return parameters_; }

 private:
  Parameters parameters_;
  std::unique_ptr<Position> position_;
  Attention attention_;
};

}  // namespace heed::test
