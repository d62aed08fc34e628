#include "experiments/data/grammar_data.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/ngram.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/sha256.hpp"

namespace heed {
namespace {

constexpr std::int32_t eos = 0;

/// The first distance of agreement in each group of targets.
constexpr std::array<std::size_t, 7> distances{1, 2, 3, 4, 5, 9, 17};
Index range_of(std::size_t distance) { return std::ranges::upper_bound(distances, distance) - distances.begin() - 1; }

Batch padding(Index rows, Index context) {
  return {{"inputs", Tensor::full({rows, context}, eos, DType::int64)},
          {"next", Tensor::full({rows, context}, -1, DType::int64)},
          {"lengths", Tensor::zeros({rows}, DType::int64)}};
}

/// A sentence and its <eos> from position `at` of a row on, as far as there is room, where the row's padding begins from then on; returns
/// the position after them.
Index put_sentence(Batch& batch, Index row, Index at, std::vector<std::int32_t> const& words) {
  Index const context = batch["inputs"].size(1), length = std::ssize(words);
  auto const begin = static_cast<std::size_t>(row * context);
  auto const inputs = batch["inputs"].mutable_data<std::int64_t>().subspan(begin);
  auto const next = batch["next"].mutable_data<std::int64_t>().subspan(begin);
  for (Index i = 0; i <= length && at + i < context; ++i) {
    auto const position = static_cast<std::size_t>(at + i);
    inputs[position] = i == 0 ? eos : heed::at(words, i - 1) + 1;
    next[position] = i == length ? eos : heed::at(words, i) + 1;
  }
  heed::at(batch["lengths"].mutable_data<std::int64_t>(), row) = std::min(at + length + 1, context);
  return at + length + 1;
}

class GrammarDataset : public Dataset {
 public:
  GrammarDataset(Grammar grammar, HashedFile const& file, GrammarSettings const& settings, std::uint64_t seed)
      : grammar_(std::move(grammar)), settings_(settings), seed_(seed) {
    facts_.tokenizer = facts_.source_tokenizer = sentence_tokenizer(grammar_.words());
    up_to_ = grammar_.up_to(settings_.longest);
    if (up_to_.probability < 0.01)
      throw FileError(fmt::format("{}: only {:.2g} % of its sentences have at most {} words (data.longest); the shortest has {}", file.file,
                                  100 * up_to_.probability, settings_.longest, grammar_.shortest()));
    for (Index i = 0; i < settings_.validation; ++i) {
      auto const sentence = held_out(i);
      information_.push_back(information_.back() - sentence.log_probability + std::log(up_to_.probability));
      held_out_tokens_.push_back(held_out_tokens_.back() + static_cast<Index>(sentence.words.size()) + 1);
      // Sums of a few hundred logarithms agree to far better than this; a second derivation of equal weight would make a difference of 0.7.
      if (i < 2'000 && std::abs(grammar_.log_probability(sentence.words) - sentence.log_probability) > 1e-6) {
        std::string words;
        for (auto word : sentence.words) words += (words.empty() ? "" : " ") + heed::at(grammar_.words(), word);
        throw FileError(fmt::format("{}: the grammar is ambiguous, so its entropy is not known: '{}' has {} derivations", file.file, words,
                                    grammar_.derivations(sentence.words)));
      }
    }
    Index const words = facts_.tokenizer->vocabulary();
    double const exact = information_per_token(settings_.validation), entropy = up_to_.entropy / (up_to_.expected_length + 1);
    facts_.signature = {{.name = "inputs", .classes = words}, {.name = "next", .classes = words}};
    facts_.groups = groups();
    facts_.files = {{"grammar", file}};
    facts_.description = {{"file", file.file},
                          {"sha256", file.sha256},
                          {"vocabulary", words},
                          {"nonterminals", grammar_.nonterminals()},
                          {"rules", grammar_.rules()},
                          {"longest", settings_.longest},
                          {"share_of_sentences", up_to_.probability},
                          {"tokens_per_sentence", up_to_.expected_length + 1},
                          {"tokens", {{"validation", held_out_tokens_.back()}}},
                          {"entropy", entropy},
                          {"exact", exact}};
    facts_.ngrams = std::async(std::launch::deferred, [this] { return ngram_losses(); });
    facts_.bounds = {{"exact", exact}, {"entropy", entropy}};
    facts_.optimum = [this](Index rows, Index context) {
      auto const first = held_out_rows(context);
      return information_per_token(heed::at(first, std::clamp<Index>(rows, 1, std::ssize(first) - 1)));
    };
  }

  /// Row r is the sentence drawn from Stream(seed, "data").child(index · batch + r) or, packed, those drawn from its children 0, 1, …
  Batch training(Index index, Index batch, Index context) const override {
    check_context(context);
    Batch result = padding(batch, context);
    Stream const stream(seed_, "data");
    for (Index row = 0; row < batch; ++row) {
      auto const draws = stream.child(static_cast<std::uint64_t>(index * batch + row));
      if (!settings_.pack) {
        put_sentence(result, row, 0, grammar_.sample(draws, settings_.longest).words);
        continue;
      }
      Index at = 0;
      for (std::uint64_t i = 0; at < context; ++i)
        at = put_sentence(result, row, at, grammar_.sample(draws.child(i), settings_.longest).words);
    }
    return result;
  }

  Index validation_batches(Index batch, Index context) const override {
    auto const rows = std::ssize(held_out_rows(context)) - 1;
    return (rows + batch - 1) / batch;
  }

  Batch validation(Index index, Index batch, Index context) const override {
    check_context(context);
    auto const sentences = held_out_rows(context);
    auto const [first, rows] = rows_of_batch("validation", index, batch, std::ssize(sentences) - 1);
    Batch result = padding(rows, context);
    if (!grammar_.agreement_values().empty()) result.set("groups", Tensor::full({rows, context}, -1, DType::int64));
    for (Index row = 0; row < rows; ++row) {
      auto const number = static_cast<std::size_t>(first + row);
      fill_held_out(result, row, sentences[number], sentences[number + 1]);
    }
    return result;
  }

 private:
  double information_per_token(Index sentences) const {
    auto const count = static_cast<std::size_t>(sentences);
    return information_[count] / static_cast<double>(held_out_tokens_[count]);
  }

  /// Sequence r of the held-out data has the sentences from number [r] to [r + 1].
  std::vector<Index> held_out_rows(Index context) const {
    std::vector<Index> first{0};
    for (Index i = 1; i <= settings_.validation; ++i) {
      auto const tokens = heed::at(held_out_tokens_, i) - heed::at(held_out_tokens_, first.back());
      if (i - first.back() > 1 && (!settings_.pack || tokens > context)) first.push_back(i - 1);
    }
    first.push_back(settings_.validation);
    return first;
  }

  Grammar::Sentence held_out(Index number) const {
    return grammar_.sample(Stream(0, "grammar.held_out").child(static_cast<std::uint64_t>(number)), settings_.longest);
  }

  void check_context(Index context) const {
    if (context > settings_.longest) return;
    throw Error(fmt::format("model.context: {} is too short for sentences of up to {} words and <eos>; make it {} or set data.longest: {}",
                            context, settings_.longest, settings_.longest + 1, context - 1));
  }

  void fill_held_out(Batch& batch, Index row, Index first, Index end) const {
    for (Index number = first, at = 0; number < end; ++number) {
      auto const sentence = held_out(number);
      if (batch.has("groups")) {
        Tensor& all = batch["groups"];
        auto const groups = all.mutable_data<std::int64_t>().subspan(static_cast<std::size_t>(row * all.size(1) + at));
        for (auto const& [from, to] : sentence.agreements)
          if (heed::at(grammar_.agreement_values(), sentence.words[to]) >= 0) groups[to] = range_of(to - from);
      }
      at = put_sentence(batch, row, at, sentence.words);
    }
  }

  TargetGroups groups() const {
    auto const& values = grammar_.agreement_values();
    if (values.empty()) return {};
    TargetGroups result{{}, {-1}};  // <eos> has no value
    for (std::size_t i = 0; i < distances.size(); ++i) {
      auto const first = distances[i];
      std::string name = fmt::format("agreement.distance{}", first);
      if (i + 1 == distances.size())
        name += "+";
      else if (auto const last = distances[i + 1] - 1; last > first)
        name += fmt::format("-{}", last);
      result.names.push_back(std::move(name));
    }
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
    for (Index i = 0; i < settings_.ngram_sentences; ++i)
      append(train, grammar_.sample(stream.child(static_cast<std::uint64_t>(i)), settings_.longest));
    for (Index i = 0; i < settings_.validation; ++i) append(asked, held_out(i));
    return witten_bell(train, asked, vocabulary(), 6, eos);
  }

  Grammar grammar_;
  GrammarSettings settings_;
  std::uint64_t seed_;
  Grammar::UpTo up_to_;
  std::vector<double> information_{0};     // cumulative −log P of the held-out sentences, in nats
  std::vector<Index> held_out_tokens_{0};  // and their cumulative number of tokens
};

std::unique_ptr<Dataset> open_grammar(GrammarSettings const& settings, DataContext const& context) {
  HashedFile file;
  auto grammar = read_grammar(settings.path, context, file);
  return sentences_of(std::move(grammar), file, settings, context.seed);
}

Declared<DataKind> const grammar_data{
    data_kind("grammar", "sentences of a probabilistic context-free grammar, whose entropy is known exactly", open_grammar)};

}  // namespace

Grammar read_grammar(std::optional<std::string> const& path, DataContext const& context, HashedFile& file) {
  auto const found = path ? locate(*path, context) : shipped("english.yaml");
  auto const text = read_text(found);
  file = {found.string(), sha256(text)};
  return Grammar::read(text, file.file);
}

std::vector<Field> GrammarSettings::fields() {
  return {field(&path, "path", "grammar file (default: the embedded configs/data/english.yaml)"),
          field(&longest, "longest", "longest sentence in words; longer ones are left out; model.context must be larger").in(1, 1000),
          field(&pack, "pack", "fill each sequence with several sentences, instead of one and padding"),
          field(&validation, "validation", "number of held-out sentences, the same for every seed").in(1, 1e6),
          field(&ngram_sentences, "ngram_sentences", "number of sentences from which the n-gram baselines are estimated").in(1, 1e7)};
}

std::unique_ptr<Dataset> sentences_of(Grammar grammar, HashedFile const& file, GrammarSettings const& settings, std::uint64_t seed) {
  return std::make_unique<GrammarDataset>(std::move(grammar), file, settings, seed);
}

}  // namespace heed
