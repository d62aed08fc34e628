#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/grammar.hpp"
#include "experiments/data/ngram.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/sha256.hpp"

namespace heed {
namespace {

constexpr std::int32_t eos = 0;

/// The groups of targets by the distance of agreement: the first one of each, and what it is called.
constexpr std::array<std::pair<std::size_t, char const*>, 7> distances{
    {{1, "1"}, {2, "2"}, {3, "3"}, {4, "4"}, {5, "5-8"}, {9, "9-16"}, {17, "17+"}}};
Index range_of(std::size_t distance) {
  return std::ranges::upper_bound(distances, distance, {}, [](auto const& group) { return group.first; }) - distances.begin() - 1;
}

/// `data: {kind: grammar}`: sentences of a grammar, by default of configs/data/english.yaml.
struct GrammarSettings : Settings {
  std::optional<std::string> path;
  Index longest = 31;
  bool pack = false;
  Index validation = 2'000;
  Index ngram_sentences = 100'000;

  std::vector<Field> fields() override {
    return {field(&path, "path", "grammar file (default: the embedded configs/data/english.yaml)"),
            field(&longest, "longest", "longest sentence in words; longer ones are left out; model.context must be larger").in(1, 1000),
            field(&pack, "pack", "fill each sequence with several sentences, instead of one and padding"),
            field(&validation, "validation", "number of held-out sentences, the same for every seed").in(1, 1e6),
            field(&ngram_sentences, "ngram_sentences", "number of sentences from which the n-gram baselines are estimated").in(1, 1e7)};
  }
};

/// Sentences of at most `longest` words, drawn from a grammar conditioned on that length. The inputs are <eos> and a sentence's words, the
/// targets its words and <eos>, so that the loss is −log P of the sentence. One sentence per sequence, padded with inputs <eos> and targets
/// −1; or, packed, sentences one after another: as they are independent, −log P is still the lowest loss, but a model has to learn how far
/// back to attend. Packed training sequences are cut where they are full, because dropping sentences that do not fit would favour short
/// ones; held-out sentences stay whole. Token 0 is <eos>, token w + 1 is word w of the grammar. Training sentences are unlimited; the
/// held-out ones are the same for every seed.
///
/// Training row r is the sentence drawn from Stream(seed, "data").child(r) or, packed, those drawn from its children 0, 1, …
///
/// Groups of targets are agreement.distance1 …: words that agree with the word at this distance before them (Linzen et al. 2016), if the
/// grammar declares agreement. References are n-gram models counted on `ngram_sentences` separate sentences; "exact", the mean −log P of
/// the held-out sentences, which is the loss of a perfect model; "entropy", its expectation. All in nats per token, <eos> included.
class GrammarDataset : public DrawnDataset {
 public:
  /// Throws FileError if hardly any sentence is this short, or if a sentence is ambiguous.
  GrammarDataset(GrammarSettings const& settings, DataContext const& context)
      : DrawnDataset(context.seed, "grammar.held_out", settings.validation), settings_(settings) {
    HashedFile file;
    grammar_ = read_grammar(settings.path, context, file);
    facts_.tokenizer = facts_.source_tokenizer = sentence_tokenizer(grammar_.words());
    auto const up_to = grammar_.up_to(settings_.longest);
    if (up_to.probability < 0.01)
      throw FileError(fmt::format("{}: only {:.2g} % of its sentences have at most {} words (data.longest); the shortest has {}", file.file,
                                  100 * up_to.probability, settings_.longest, grammar_.shortest()));
    for (Index i = 0; i < held_out(); ++i) {
      auto const sentence = drawn(held_out_draws(), i);
      information_.push_back(information_.back() - sentence.log_probability + std::log(up_to.probability));
      held_out_tokens_.push_back(held_out_tokens_.back() + static_cast<Index>(sentence.words.size()) + 1);
      // Sums of a few hundred logarithms agree to far better than this; a second derivation of equal weight would make a difference of 0.7.
      if (i < 2'000 && std::abs(grammar_.log_probability(sentence.words) - sentence.log_probability) > 1e-6) {
        auto const words = mapped(sentence.words, [&](auto word) { return heed::at(grammar_.words(), word); });
        throw FileError(fmt::format("{}: the grammar is ambiguous, so its entropy is not known: '{}' has {} derivations", file.file,
                                    fmt::join(words, " "), grammar_.derivations(sentence.words)));
      }
    }
    Index const words = facts_.tokenizer->vocabulary();
    double const exact = information_per_token(held_out()), entropy = up_to.entropy / (up_to.expected_length + 1);
    facts_.signature = {{.name = "inputs", .classes = words}, {.name = "next", .classes = words}};
    facts_.groups = groups();
    facts_.files = {{"grammar", file}};
    facts_.description = {{"file", file.file},
                          {"sha256", file.sha256},
                          {"vocabulary", words},
                          {"nonterminals", grammar_.nonterminals()},
                          {"rules", grammar_.rules()},
                          {"longest", settings_.longest},
                          {"share_of_sentences", up_to.probability},
                          {"tokens_per_sentence", up_to.expected_length + 1},
                          {"tokens", {{"validation", held_out_tokens_.back()}}},
                          {"entropy", entropy},
                          {"exact", exact}};
    facts_.ngrams = std::async(std::launch::deferred, [this] { return ngram_losses(); });
    facts_.bounds = {{"exact", exact}, {"entropy", entropy}};
    facts_.optimum = [this](Index rows, Index length) {
      auto const first = first_sentences(length);
      return information_per_token(heed::at(first, std::clamp<Index>(rows, 1, std::ssize(first) - 1)));
    };
  }

 private:
  double information_per_token(Index sentences) const {
    auto const count = static_cast<std::size_t>(sentences);
    return information_[count] / static_cast<double>(held_out_tokens_[count]);
  }

  /// Sequence r of the held-out data has the sentences from number [r] to [r + 1].
  std::vector<Index> first_sentences(Index context) const {
    std::vector<Index> first{0};
    for (Index i = 1; i <= held_out(); ++i) {
      auto const tokens = heed::at(held_out_tokens_, i) - heed::at(held_out_tokens_, first.back());
      if (i - first.back() > 1 && (!settings_.pack || tokens > context)) first.push_back(i - 1);
    }
    first.push_back(held_out());
    return first;
  }
  Index held_out_rows(Index context) const override { return std::ssize(first_sentences(context)) - 1; }

  Grammar::Sentence drawn(Stream const& draws, Index number) const {
    return grammar_.sample(draws.child(static_cast<std::uint64_t>(number)), settings_.longest);
  }

  /// Held-out data have the part "groups" if the grammar declares agreement.
  Batch rows(Stream const& draws, RowRange const& range, Index context, bool held_out) const override {
    if (context <= settings_.longest)
      throw Error(
          fmt::format("model.context: {} is too short for sentences of up to {} words and <eos>; make it {} or set data.longest: {}",
                      context, settings_.longest, settings_.longest + 1, context - 1));
    Batch batch{{"inputs", Tensor::full({range.count, context}, eos, DType::int64)},
                {"next", Tensor::full({range.count, context}, -1, DType::int64)},
                {"lengths", Tensor::zeros({range.count}, DType::int64)}};
    if (held_out && !grammar_.agreement_values().empty()) batch.set("groups", Tensor::full({range.count, context}, -1, DType::int64));
    auto const first = held_out ? first_sentences(context) : std::vector<Index>();
    for (Index row = 0; row < range.count; ++row) {
      auto const number = range.first + row;
      Index at = 0;
      if (held_out) {
        for (Index i = heed::at(first, number); i < heed::at(first, number + 1); ++i) at = put_sentence(batch, row, at, drawn(draws, i));
      } else if (settings_.pack) {
        auto const of_row = draws.child(static_cast<std::uint64_t>(number));
        for (Index i = 0; at < context; ++i) at = put_sentence(batch, row, at, drawn(of_row, i));
      } else {
        put_sentence(batch, row, 0, drawn(draws, number));
      }
    }
    return batch;
  }

  /// Writes a sentence and its <eos> from position `at` of a row on, as far as there is room; returns the position after them.
  Index put_sentence(Batch& batch, Index row, Index at, Grammar::Sentence const& sentence) const {
    Index const context = batch["inputs"].size(1), length = std::ssize(sentence.words);
    auto const from = [&](char const* part) {
      return batch[part].mutable_data<std::int64_t>().subspan(static_cast<std::size_t>(row * context + at));
    };
    auto const inputs = from("inputs"), next = from("next");
    for (Index i = 0; i <= length && at + i < context; ++i) {
      heed::at(inputs, i) = i == 0 ? eos : heed::at(sentence.words, i - 1) + 1;
      heed::at(next, i) = i == length ? eos : heed::at(sentence.words, i) + 1;
    }
    if (batch.has("groups"))
      for (auto const& [noun, verb] : sentence.agreements)
        if (heed::at(grammar_.agreement_values(), sentence.words[verb]) >= 0) from("groups")[verb] = range_of(verb - noun);
    heed::at(batch["lengths"].mutable_data<std::int64_t>(), row) = std::min(at + length + 1, context);
    return at + length + 1;
  }

  TargetGroups groups() const {
    auto const& values = grammar_.agreement_values();
    if (values.empty()) return {};
    TargetGroups result{{}, {-1}};  // <eos> has no value
    for (auto const& [first, name] : distances) result.names.push_back(fmt::format("agreement.distance{}", name));
    result.categories.insert(result.categories.end(), values.begin(), values.end());
    return result;
  }

  std::vector<double> ngram_losses() const {
    std::vector<std::int32_t> train{eos}, asked{eos};
    auto const append = [](std::vector<std::int32_t>& tokens, Grammar::Sentence const& sentence) {
      for (auto word : sentence.words) tokens.push_back(word + 1);
      tokens.push_back(eos);
    };
    Stream const stream(0, "grammar.ngram");
    for (Index i = 0; i < settings_.ngram_sentences; ++i) append(train, drawn(stream, i));
    for (Index i = 0; i < held_out(); ++i) append(asked, drawn(held_out_draws(), i));
    return witten_bell(train, asked, vocabulary(), 6, eos);
  }

  Grammar grammar_;
  GrammarSettings settings_;
  std::vector<double> information_{0};     // cumulative −log P of the held-out sentences, in nats
  std::vector<Index> held_out_tokens_{0};  // and their cumulative number of tokens
};

Declared<DataKind> const grammar_data{data_kind("grammar",
                                                "sentences of a probabilistic context-free grammar, whose entropy is known exactly",
                                                open_as<GrammarSettings, GrammarDataset>)};

}  // namespace

Grammar read_grammar(std::optional<std::string> const& path, DataContext const& context, HashedFile& file) {
  auto const found = path ? locate(*path, context) : shipped("english.yaml");
  auto const text = read_text(found);
  file = {found.string(), sha256(text)};
  return Grammar::read(text, file.file);
}

}  // namespace heed
