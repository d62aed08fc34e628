#include "experiments/data/parallel.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "autograd/random.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/ngram.hpp"
#include "experiments/utf8.hpp"
#include "nn/sha256.hpp"

namespace heed {
namespace {

std::unique_ptr<Dataset> open_parallel(ParallelSettings const& settings, DataContext const& context) {
  auto const read = [&](std::string const& stem) {
    auto const source = locate(stem + "." + settings.from, context), target = locate(stem + "." + settings.to, context);
    return ParallelText::read(source, target);
  };
  auto const train = read(settings.train);
  auto const held_out = settings.validation ? std::optional(read(*settings.validation)) : std::nullopt;
  return std::make_unique<ParallelDataset>(train, held_out, settings, context.seed);
}

bool const registered = register_data("parallel", "sentences and their translations in two files, line by line, by words", open_parallel);

[[noreturn]] void refuse_line(std::string const& path, std::size_t line, std::string const& message) {
  throw FileError(fmt::format("{}:{}: {}", path, line + 1, message));
}

void check_line(std::string const& path, std::size_t number, std::string_view line) {
  for (std::size_t i = 0; i < line.size();) {
    auto const start = i;
    if (!decode_utf8(line, i)) refuse_line(path, number, fmt::format("not UTF-8 at byte {} of the line", start));
  }
  auto const words = words_of(line);
  if (words.empty()) refuse_line(path, number, "the line is empty; every line needs a sentence, leave it out of both files");
  for (auto const word : words)
    if (Tokenizer::is_mark(word) && word != "<unk>")
      refuse_line(path, number, fmt::format("{} is a mark of the vocabulary, no word", word));
}

ParallelText::Side read_side(std::filesystem::path const& path) {
  auto const text = read_text(path);
  ParallelText::Side side{path.string(), sha256(std::as_bytes(std::span(text))), {}};
  for (std::size_t begin = 0; begin < text.size();) {
    auto const end = std::min(text.find('\n', begin), text.size());
    side.lines.push_back(text.substr(begin, end - begin));
    check_line(side.path, side.lines.size() - 1, side.lines.back());
    begin = end + 1;
  }
  return side;
}

using Counts = std::map<std::string, std::int64_t, std::less<>>;

void count(Counts& counts, std::vector<std::string> const& lines) {
  for (auto const& line : lines) {
    for (auto const word : words_of(line)) {
      if (auto const found = counts.find(word); found != counts.end())
        ++found->second;
      else
        counts.emplace(word, 1);
    }
  }
}

Tokenizer tokenizer_of(Counts const& counts, std::int64_t least) {
  std::vector<std::string> words;
  for (auto const& [word, times] : counts)
    if (times >= least && !Tokenizer::is_mark(word)) words.push_back(word);
  return Tokenizer::words(std::move(words));
}

std::vector<std::int32_t> tokens_of(Tokenizer const& tokenizer, std::string const& line) {
  auto tokens = tokenizer.encode(line);
  tokens.erase(tokens.begin());  // <bos>
  return tokens;
}

/// Throws FileError with the line of the longest sentence if it and its mark are longer than the context.
void check_lengths(std::string const& path, std::vector<SequencePair> const& pairs, std::vector<std::int32_t> SequencePair::*side,
                   std::int64_t context) {
  auto const longest = std::ranges::max_element(pairs, {}, [&](SequencePair const& pair) { return (pair.*side).size(); });
  if (longest == pairs.end()) return;
  if (auto const length = std::ssize((*longest).*side); length >= context)
    refuse_line(
        path, static_cast<std::size_t>(longest - pairs.begin()),
        fmt::format("{} words and <eos> do not fit a context of {}; make model.context {} or more, or leave the line out of both files",
                    length, context, length + 1));
}

/// The target sentences as one text, each between two <eos>.
std::vector<std::int32_t> target_text(std::vector<SequencePair> const& pairs) {
  std::vector<std::int32_t> text{Tokenizer::eos};
  for (auto const& pair : pairs) {
    text.insert(text.end(), pair.target.begin(), pair.target.end());
    text.push_back(Tokenizer::eos);
  }
  return text;
}

}  // namespace

std::vector<Field> ParallelSettings::fields() {
  return {{.name = "train",
           .target = &train,
           .help = "text files without the language at the end of their names: NAME for NAME.de and NAME.en",
           .required = true},
          {.name = "validation", .target = &validation, .help = "the held-out text, named in the same way"},
          {.name = "from", .target = &from, .help = "language that is translated, the end of its files' names", .required = true},
          {.name = "to", .target = &to, .help = "language that it is translated to", .required = true},
          {.name = "vocabularies",
           .target = &vocabularies,
           .help = "joint: one for both languages; separate: one for each",
           .words = {"joint", "separate"}},
          {.name = "least_count",
           .target = &least_count,
           .help = "a word that stands less often in the training text is <unk>",
           .least = 1,
           .greatest = 1e9},
          {.name = "pool",
           .target = &pool,
           .help = "so many batches in a row are cut anew from their pairs by length, against padding; 1: none are",
           .least = 1,
           .greatest = 1e9}};
}

std::optional<std::string> ParallelSettings::contradiction() {
  if (from != to) return std::nullopt;
  return fmt::format("to: it is the language that is translated, {}", from);
}

ParallelText ParallelText::read(std::filesystem::path const& source, std::filesystem::path const& target) {
  ParallelText text{read_side(source), read_side(target)};
  auto const &a = text.source, &b = text.target;
  if (a.lines.size() == b.lines.size()) return text;
  auto const& [more, fewer] = a.lines.size() > b.lines.size() ? std::tie(a, b) : std::tie(b, a);
  refuse_line(
      more.path, fewer.lines.size(),
      fmt::format("no translation: {} ends after {} lines, and this file has {}", fewer.path, fewer.lines.size(), more.lines.size()));
}

ParallelDataset::ParallelDataset(ParallelText const& train, std::optional<ParallelText> const& held_out, ParallelSettings settings,
                                 std::uint64_t seed)
    : settings_(std::move(settings)), seed_(seed) {
  bool const joint = settings_.vocabularies == "joint";
  Counts source, target;
  count(joint ? target : source, train.source.lines);
  count(target, train.target.lines);
  target_words_ = tokenizer_of(target, settings_.least_count);
  source_words_ = joint ? target_words_ : tokenizer_of(source, settings_.least_count);
  train_ = encoded(train);
  if (held_out) held_out_ = encoded(*held_out);
}

Signature ParallelDataset::gives() const {
  auto const longest = [&](std::vector<std::int32_t> SequencePair::*side) {
    std::int64_t most = 0;
    for (auto const* const split : {&train_, &held_out_})
      for (auto const& pair : split->pairs) most = std::max(most, std::ssize(pair.*side) + 1);
    return most;
  };
  return pair_signature(source_words_.vocabulary(), target_words_.vocabulary(), settings_.vocabularies == "joint",
                        longest(&SequencePair::source), longest(&SequencePair::target));
}

ParallelDataset::Split ParallelDataset::encoded(ParallelText const& text) const {
  Split split{{}, text.source.path, text.target.path, text.source.sha256, text.target.sha256};
  for (std::size_t line = 0; line < text.source.lines.size(); ++line)
    split.pairs.push_back({tokens_of(source_words_, text.source.lines[line]), tokens_of(target_words_, text.target.lines[line])});
  return split;
}

std::vector<std::int32_t> const& ParallelDataset::order(std::int64_t epoch, std::int64_t batch) const {
  if (ordered_ == std::pair(epoch, batch)) return order_;
  auto const& pairs = train_.pairs;
  auto const stream = Stream(seed_, "data").child(static_cast<std::uint64_t>(epoch));
  auto const shuffle = [](auto&& all, Stream const& draws) {
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[draws.below(i, i)]);
  };
  std::vector<std::int32_t> drawn(pairs.size());
  std::iota(drawn.begin(), drawn.end(), 0);
  shuffle(drawn, stream.child("pairs"));
  auto const size = static_cast<std::size_t>(batch), batches = drawn.size() / size, pool = static_cast<std::size_t>(settings_.pool);
  order_.clear();
  for (std::size_t first = 0; first < batches; first += pool) {
    auto const in_pool = std::min(pool, batches - first);
    auto const part = std::span(drawn).subspan(first * size, in_pool * size);
    if (pool > 1)
      std::ranges::stable_sort(part, {}, [&](std::int32_t i) {
        auto const& [source, target] = pairs[static_cast<std::size_t>(i)];
        return std::pair(target.size(), source.size());
      });
    std::vector<std::size_t> numbers(in_pool);
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    if (pool > 1) shuffle(numbers, stream.child("batches").child(first));
    for (auto const number : numbers) std::ranges::copy(part.subspan(number * size, size), std::back_inserter(order_));
  }
  ordered_ = {epoch, batch};
  return order_;
}

Batch ParallelDataset::training(std::int64_t index, std::int64_t batch, std::int64_t context) const {
  auto const& pairs = train_.pairs;
  check_lengths(train_.source_path, pairs, &SequencePair::source, context);
  check_lengths(train_.target_path, pairs, &SequencePair::target, context);
  auto const batches = std::ssize(pairs) / batch;
  if (batches == 0) throw FileError(fmt::format("{}: its {} lines are too few for a batch of {}", train_.source_path, pairs.size(), batch));
  std::lock_guard const lock(ordering_);
  auto const& all = order(index / batches, batch);
  std::vector<SequencePair const*> rows;
  for (auto const i : std::span(all).subspan(static_cast<std::size_t>(index % batches * batch), static_cast<std::size_t>(batch)))
    rows.push_back(&pairs[static_cast<std::size_t>(i)]);
  return batch_of(rows);
}

std::int64_t ParallelDataset::validation_batches(std::int64_t batch, std::int64_t) const {
  return (std::ssize(held_out_.pairs) + batch - 1) / batch;
}

Batch ParallelDataset::validation(std::int64_t index, std::int64_t batch, std::int64_t context) const {
  auto const& pairs = held_out_.pairs;
  check_lengths(held_out_.source_path, pairs, &SequencePair::source, context);
  check_lengths(held_out_.target_path, pairs, &SequencePair::target, context);
  auto const first = index * batch, count = std::min(batch, std::ssize(pairs) - first);
  if (index < 0 || count <= 0)
    throw Error(fmt::format("validation batch {} of {} does not exist", index, validation_batches(batch, context)));
  std::vector<SequencePair const*> rows;
  for (auto row = first; row < first + count; ++row) rows.push_back(&pairs[static_cast<std::size_t>(row)]);
  return batch_of(rows);
}

std::optional<std::vector<std::int64_t>> ParallelDataset::encode(std::string const& text) const {
  auto const tokens = target_words_.encode(text);
  return std::vector<std::int64_t>(tokens.begin(), tokens.end());
}

std::vector<std::pair<std::string, double>> ParallelDataset::yardsticks() const {
  std::call_once(counted_, [&] {
    if (!held_out_.pairs.empty())
      ngram_losses_ = witten_bell(target_text(train_.pairs), target_text(held_out_.pairs), vocabulary(), 6, Tokenizer::eos);
  });
  std::vector<std::pair<std::string, double>> result;
  for (auto const loss : ngram_losses_) result.emplace_back(fmt::format("{}-gram", result.size() + 1), loss);
  return result;
}

nlohmann::json ParallelDataset::describe() const {
  nlohmann::json result{{"vocabulary", vocabulary()}, {"source_vocabulary", source_words_.vocabulary()}};
  auto const add = [&](char const* name, Split const& split) {
    if (split.pairs.empty()) return;
    result[name] = {{"source", {{"file", split.source_path}, {"sha256", split.source_sha256}}},
                    {"target", {{"file", split.target_path}, {"sha256", split.target_sha256}}},
                    {"pairs", split.pairs.size()}};
  };
  add("training", train_);
  add("validation", held_out_);
  for (auto const& [name, loss] : yardsticks()) result["ngram"][name.substr(0, name.find('-'))] = loss;
  return result;
}

}  // namespace heed
