#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/pairs/pair_task.hpp"
#include "experiments/data/tasks/task.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"

namespace heed {
namespace {

/// `data: {kind: pairs, task: reverse}` or `task: {kind: reverse, length: 20}`
struct PairsSettings : Settings {
  Choice task = choice_of<PairKind>();
  std::optional<Index> training;
  Index validation = 1'000;

  std::vector<Field> fields() override {
    return {field(&task, "task", "how the target depends on the source").mandatory(),
            field(&training, "training", "number of training pairs, reshuffled each epoch (default: new pairs at every step)").in(1, 1e9),
            field(&validation, "validation", "number of held-out pairs, the same for every seed").in(1, 1e6)};
  }
};

/// Pairs of a task, as rows of an encoder–decoder (batch_of).
class PairsDataset : public DrawnDataset {
 public:
  PairsDataset(PairsSettings const& settings, DataContext const& context)
      : DrawnDataset(context.seed, "pairs." + settings.task.kind + ".held_out", settings.validation),
        settings_(settings),
        task_(dynamic_cast<PairTask const&>(*settings_.task.settings)) {
    facts_.tokenizer = facts_.source_tokenizer = word_tokenizer(task_.words());
    Index const words = facts_.tokenizer->vocabulary();
    auto const [source, target] = task_.longest();
    facts_.signature = pair_signature(words, words, true, source + 1, target + 1);
    facts_.description = values_of(*settings_.task.settings);
    facts_.description["task"] = settings_.task.kind;
    facts_.description["vocabulary"] = words;
    facts_.bounds = {chance(task_.words())};
  }

  /// Its words, with blanks between.
  Original original(Index row) const override {
    if (row < 0 || row >= held_out()) return {};
    PairRow drawn = task_.draw(held_out_draws().child(static_cast<std::uint64_t>(row)), true);
    return {sentence_of(*facts_.tokenizer, drawn.target), std::move(drawn.links)};
  }

 private:
  /// Every pair comes once in a round. They are drawn independently, so that any order of each round's own will do.
  Index in_round(Index row) const {
    auto const count = *settings_.training;
    return reordered(row % count, count, Stream(seed(), "data.rounds").child(static_cast<std::uint64_t>(row / count)));
  }

  /// The marks come before the words. Where a target's first word and its end are certain, they are not scored in held-out data.
  Batch rows(Stream const& draws, RowRange const& range, Index context, bool held_out) const override {
    auto const [source, target] = task_.longest();
    if (auto const least = std::max(source, target) + 1; context < least)
      throw Error(
          fmt::format("model.context: {} is too short for {}, whose sources and targets have up to {} and {} words and <eos>; make it "
                      "{} or more",
                      context, settings_.task.kind, source, target, least));
    std::vector<PairRow> drawn;
    for (Index row = range.first; row < range.first + range.count; ++row) {
      auto const number = settings_.training && !held_out ? in_round(row) : row;
      drawn.push_back(task_.draw(draws.child(static_cast<std::uint64_t>(number)), held_out));
    }
    std::vector<SequencePair const*> pairs;
    for (auto& row : drawn) {
      for (auto* const side : {&row.source, &row.target})
        for (auto& word : *side) word += Tokenizer::marks;
      pairs.push_back(&row);
    }
    Batch result = batch_of(pairs);
    auto const width = static_cast<std::size_t>(result["targets"].size(1));
    for (std::size_t row = 0; row < drawn.size(); ++row) {
      if (!held_out || !drawn[row].certain) continue;
      auto const wanted = result["targets"].mutable_data<std::int64_t>().subspan(row * width, width);
      wanted.front() = -1;
      std::ranges::replace(wanted, Tokenizer::eos, -1);
    }
    return result;
  }

  PairsSettings settings_;
  PairTask const& task_;
};

Declared<DataKind> const pairs_data{
    data_kind("pairs", "synthetic pairs of a source and a target, for encoder–decoders", open_as<PairsSettings, PairsDataset>)};

}  // namespace

}  // namespace heed
