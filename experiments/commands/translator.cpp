#include "experiments/commands/translator.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"

namespace heed {

namespace {

std::shared_ptr<Tokenizer const> words_of_part(TrainedModel const& run, std::string const& part) {
  std::string const path = run.path.string();
  if (!reads_source(run))
    throw ConfigError(path,
                      fmt::format("its model, of kind {}, does not translate; heed sample continues a text", run.settings.model.kind));
  if (run.tokenizer.empty() || run.source_tokenizer.empty())
    throw ConfigError(path, "its data are tokens without a text, so there is none to translate");
  auto words = tokenizer_of(run, part);
  if (words->begin() != Tokenizer::bos || words->end() != Tokenizer::eos)
    throw ConfigError(path, fmt::format("the {} of its data has no tokens for beginning and end, so nothing can be translated", part));
  return words;
}

constexpr std::size_t tokens_at_once = 4096;
constexpr Index max_words = 4096;  // of a line: attention's time grows with their square

}  // namespace

bool reads_source(TrainedModel const& run) {
  return std::ranges::any_of(input_parts_of(run.settings.model), [](InputPart const& part) { return part.name == "source"; });
}

Translator::Translator(TrainedModel const& run) : run_(run), source_(words_of_part(run, "source")), target_(words_of_part(run, "inputs")) {}

std::vector<std::int32_t> Translator::checked(std::vector<std::int32_t> tokens) const {
  auto const length = std::ssize(tokens) + 1;
  if (auto const limit = run_.model->limit(); limit && length > *limit)
    throw Error(fmt::format("{} words and <eos>, but the model reads at most {} tokens", length - 1, *limit));
  if (auto const max_length = std::max(max_words, run_.model->context()); length - 1 > max_length)
    throw Error(fmt::format("{} words, but a line may have at most {}; split it into sentences", length - 1, max_length));
  return tokens;
}

std::vector<std::int32_t> Translator::read(std::string_view line) const { return checked(tokens_of(*source_, line)); }

std::vector<std::int32_t> Translator::read_target(std::string_view line) const { return checked(tokens_of(*target_, line)); }

Batch Translator::batch(std::vector<std::int32_t> const& source, std::vector<Index> const& target) const {
  SequencePair const pair{source, {target.begin(), target.end()}};
  SequencePair const* const row = &pair;
  return batch_of(std::span(&row, 1));
}

std::vector<std::vector<Decoded>> Translator::translate(std::span<std::vector<std::int32_t> const> sources, BeamSettings const& settings,
                                                        Index max_tokens, std::uint64_t first) const try {
  Index const room = run_.model->limit().value_or(std::numeric_limits<Index>::max());
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return sources[i].size(); });
  std::vector<std::vector<Decoded>> targets(sources.size());
  for (std::size_t begin = 0; begin < order.size();) {
    auto const rows_of = [&](std::size_t i) {
      return std::max<std::size_t>(1, tokens_at_once / (static_cast<std::size_t>(settings.width) * (sources[order[i]].size() + 1)));
    };
    std::size_t end = begin + 1;
    while (end < order.size() && end - begin < rows_of(end)) ++end;
    std::vector<SequencePair> pairs;
    std::vector<SequencePair const*> rows;
    Pass pass;
    for (auto i = begin; i < end; ++i) {
      pairs.push_back({sources[order[i]], {}});
      pass.decoding.sequences.push_back(first + order[i]);
    }
    for (auto const& pair : pairs) rows.push_back(&pair);
    Batch const given = batch_of(rows);
    LengthLimit const longest = max_tokens > 0 ? LengthLimit(std::min(max_tokens, room)) : longest_targets(given, *run_.model);
    auto decoded = beam(*run_.model, given, Tokenizer::bos, Tokenizer::eos, longest, settings, pass);
    for (auto i = begin; i < end; ++i) targets[order[i]] = std::move(decoded[i - begin]);
    begin = end;
  }
  return targets;
} catch (NonFinite const& error) {
  throw FileError(fmt::format("{}: {}: the weights are damaged, or the training went wrong", run_.path.string(), error.what()));
}

}  // namespace heed
