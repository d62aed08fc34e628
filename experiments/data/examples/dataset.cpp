#include "experiments/data/examples/dataset.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/data/examples/files.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/pair_batches.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

/// All texts, a line each: what a tokenizer may learn from.
std::string text_of(std::vector<Example> const& examples) {
  std::string text;
  for (Example const& example : examples) {
    text += example.first + "\n" + example.second + "\n";
    for (auto const& option : example.options) text += option + "\n";
  }
  return text;
}

class ExamplesDataset : public Dataset {
 public:
  ExamplesDataset(Examples examples, std::shared_ptr<Tokenizer const> tokenizer, Index pool, std::uint64_t seed)
      : examples_(std::move(examples)) {
    facts_.tokenizer = facts_.source_tokenizer = std::move(tokenizer);
    if (examples_.training.empty()) throw FileError("data: there are no training examples");
    Example const& some = examples_.training.front();
    options_ = some.options.size();
    spans_ = some.span;
    for (auto const* const part : {&examples_.training, &examples_.held_out})
      for (Example const& example : *part) pairs_ = pairs_ || !example.second.empty();
    encode_all();
    for (TokenizedExample const& row : training_) {
      std::size_t all = row.first.size() + row.second.size();
      for (auto const& option : row.options) all += option.size();
      lengths_.push_back({{}, std::vector<std::int32_t>(all)});
    }
    batches_.emplace(lengths_, pool, 0, seed);
    facts_.classes = examples_.classes;
    facts_.remarks = examples_.remarks;
    facts_.files = examples_.files;
    facts_.baselines = baselines();
    facts_.description = {{"vocabulary", facts_.tokenizer->vocabulary()},
                          {"examples", {{"training", training_.size()}, {"validation", held_out_.size()}}}};
    if (!facts_.classes.empty()) facts_.description["classes"] = facts_.classes;
    if (!facts_.remarks.empty()) facts_.description["remarks"] = facts_.remarks;
    if (!facts_.files.empty()) facts_.description["files"] = to_json(facts_.files);
  }

  /// Throws Error for a batch of more examples than there are.
  Batch training(Index index, Index batch, Index) const override {
    if (batch > std::ssize(training_))
      throw Error(fmt::format("train.batch: {} examples are more than the {} that there are", batch, training_.size()));
    auto const original = [&](SequencePair const* drawn) { return &heed::at(training_, drawn - lengths_.data()); };
    return batch_of(mapped(batches_->rows(index, batch), original));
  }

  Index validation_batches(Index batch, Index) const override { return (std::ssize(held_out_) + batch - 1) / batch; }

  Batch validation(Index index, Index batch, Index) const override {
    auto const [first, count] = rows_of_batch("validation", index, batch, std::ssize(held_out_));
    std::vector<TokenizedExample const*> rows;
    for (auto row = first; row < first + count; ++row) rows.push_back(&heed::at(held_out_, row));
    return batch_of(rows);
  }

  Original original(Index row) const override {
    if (row < 0 || row >= std::ssize(held_out_)) return {};
    Example const& example = heed::at(examples_.held_out, row);
    return {.example = &example,
            .starts = spans_ ? facts_.tokenizer->starts(example.second, heed::at(held_out_, row).second) : std::vector<std::size_t>()};
  }

  void join_texts() try {
    tokens(examples_.join);
    joined_ = true;
    encode_all();
  } catch (Error const&) {  // the vocabulary lacks what would join them, so no text that it was made of was joined so
  }

 private:
  /// An example as tokens.
  struct TokenizedExample {
    std::vector<std::int32_t> first, second;
    std::vector<std::vector<std::int32_t>> options;
    Index label = -1, begin = -1, end = -1;
  };

  void encode_all() {
    for (auto const& [from, to] : {std::pair(&examples_.training, &training_), std::pair(&examples_.held_out, &held_out_)}) {
      to->clear();
      for (Example const& example : *from) to->push_back(encoded(example));
    }
    facts_.signature = make_signature();
    facts_.training_sizes = sizes_of(training_);
    facts_.held_out_sizes = sizes_of(held_out_);
  }

  /// A text that goes on after another, as tokens are made of it.
  std::string behind(std::string const& before, std::string const& text) const {
    bool const apart = !joined_ || text.empty() || before.ends_with(examples_.join) || text.starts_with(examples_.join);
    return apart ? text : examples_.join + text;
  }

  std::vector<std::int32_t> tokens(std::string const& text) const {
    auto all = facts_.tokenizer->encode(text);
    if (!all.empty() && facts_.tokenizer->begin() && all.front() == *facts_.tokenizer->begin()) all.erase(all.begin());
    return all;
  }

  TokenizedExample encoded(Example const& example) const try {
    TokenizedExample row{.first = tokens(example.first), .second = tokens(behind(example.first, example.second)), .options = {}};
    auto const& before = example.second.empty() ? example.first : example.second;
    if (example.options.size() != options_)
      throw Error(fmt::format("has {} options, the first example has {}", example.options.size(), options_));
    if (example.span != spans_) throw Error("asks for an answer, or asks for none, unlike the first example");
    for (auto const& option : example.options) row.options.push_back(tokens(behind(before, option)));
    if (spans_)
      find_answer(example, row);
    else
      row.label = label_of(example);
    return row;
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: {}", example.location, error.what()));
  }

  Index label_of(Example const& example) const {
    if (example.label.empty()) return -1;  // not known
    if (options_ > 0) {
      auto const number = parsed_number<std::size_t>(example.label);
      if (!number || *number >= options_)
        throw Error(fmt::format("its label '{}' is not the number of an option, 0 … {}", example.label, options_ - 1));
      return static_cast<Index>(*number);
    }
    auto const found = std::ranges::find(examples_.classes, example.label);
    if (found == examples_.classes.end())
      throw Error(fmt::format("there is no class '{}'{}", example.label, did_you_mean(example.label, examples_.classes)));
    return found - examples_.classes.begin();
  }

  void find_answer(Example const& example, TokenizedExample& row) const {
    if (example.answers.empty()) return;
    auto const& [text, start] = example.answers.front();
    auto const begin = static_cast<std::size_t>(start), end = begin + text.size();
    if (start < 0 || end > example.second.size() || example.second.compare(begin, text.size(), text) != 0)
      throw Error(fmt::format("its answer '{}' is not at byte {} of the passage", text, start));
    auto const starts = facts_.tokenizer->starts(example.second, row.second);
    for (std::size_t i = 0; i < row.second.size(); ++i) {
      if (starts[i + 1] > begin && row.begin < 0) row.begin = static_cast<Index>(i);
      if (starts[i] < end) row.end = static_cast<Index>(i);
    }
  }

  Signature make_signature() const {
    Index const words = facts_.tokenizer->vocabulary();
    Index first = 1, second = 1, option = 1;
    for (auto const* const part : {&training_, &held_out_})
      for (TokenizedExample const& row : *part) {
        first = std::max(first, std::ssize(row.first));
        second = std::max(second, std::ssize(row.second));
        for (auto const& each : row.options) option = std::max(option, std::ssize(each));
      }
    Signature given{{.name = "first", .classes = words, .longest = first}};
    if (pairs_) given.set({.name = "second", .classes = words, .longest = second});
    if (options_ > 0) given.set({.name = "options", .classes = words, .longest = option, .sequences = static_cast<Index>(options_)});
    if (spans_)
      given.set({.name = "answer", .classes = second, .vocabulary = "places"});
    else
      given.set({.name = "label",
                 .classes = options_ > 0 ? static_cast<Index>(options_) : std::ssize(examples_.classes),
                 .vocabulary = options_ > 0 ? "options" : "classes",
                 .weights = examples_.weights});
    if (examples_.symmetric) given.set({.name = "symmetric", .classes = 1, .vocabulary = "flag"});
    if (examples_.exact_match) given.set({.name = "exact_match", .classes = 1, .vocabulary = "flag"});
    return given;
  }

  Batch batch_of(std::vector<TokenizedExample const*> const& rows) const {
    std::vector<std::vector<std::int32_t>> first, second, options;
    std::vector<Index> labels, answers;
    for (TokenizedExample const* const row : rows) {
      first.push_back(row->first);
      second.push_back(row->second);
      options.insert(options.end(), row->options.begin(), row->options.end());
      labels.push_back(row->label);
      answers.insert(answers.end(), {row->begin, row->end});
    }
    auto const count = std::ssize(rows);
    Batch batch{{"first", padded(first, -1)}};
    if (pairs_) batch.set("second", padded(second, -1));
    if (options_ > 0) {
      Tensor const all = padded(options, -1);
      batch.set("options", all.viewed({count, static_cast<Index>(options_), all.size(1)}));
    }
    if (spans_)
      batch.set("answer", Tensor::of(answers, {count, 2}));
    else
      batch.set("label", Tensor::of(labels, {count}));
    return batch;
  }

  static std::vector<ExampleSize> sizes_of(std::vector<TokenizedExample> const& rows) {
    std::vector<ExampleSize> sizes;
    for (TokenizedExample const& row : rows) {
      Index option = 0;
      for (auto const& each : row.options) option = std::max(option, std::ssize(each));
      sizes.push_back(
          {std::ssize(row.first) + std::ssize(row.second) + option, 1 + (row.second.empty() ? 0 : 1) + (row.options.empty() ? 0 : 1)});
    }
    return sizes;
  }

  /// The class (the number of the right option) that is most frequent in training; its loss is that of the frequencies there, each class
  /// counted once more. None for spans.
  std::vector<Baseline> baselines() const {
    if (spans_ || held_out_.empty() || held_out_.front().label < 0) return {};
    std::vector<double> counts(static_cast<std::size_t>(signature()["label"].classes), 1.0);
    for (TokenizedExample const& row : training_) ++heed::at(counts, row.label);
    auto const majority = std::ranges::max_element(counts) - counts.begin();
    double right = 0, loss = 0;
    for (TokenizedExample const& row : held_out_) {
      if (row.label == majority) ++right;
      loss -= std::log(heed::at(counts, row.label) / static_cast<double>(training_.size() + counts.size()));
    }
    auto const rows = static_cast<double>(held_out_.size());
    return {{"majority class", {{"accuracy", right / rows}, {"loss", loss / rows}}}};
  }

  Examples examples_;
  std::vector<TokenizedExample> training_, held_out_;
  std::vector<SequencePair> lengths_;  ///< of the training rows, for batches of about one length
  std::optional<PairBatches> batches_;
  std::size_t options_ = 0;  ///< of each example
  bool pairs_ = false, spans_ = false;
  bool joined_ = false;  ///< the texts of an example go on after each other
};

/// The weights of the classes: as given, others 1; balanced: n/(C·n_c) for n training examples, n_c of the class, and C classes. Empty if
/// none are asked for.
std::vector<double> weights_of(MapOf<ClassWeight> const& asked, Examples const& examples) {
  auto const names = asked.names();
  if (names.empty() && asked.word.empty()) return {};
  if (examples.classes.empty()) throw Error("data.class_weights: these examples have no classes");
  for (auto const& name : names)
    if (std::ranges::find(examples.classes, name) == examples.classes.end())
      throw Error(fmt::format("data.class_weights.{}: there is no such class{}; there are {}", name, did_you_mean(name, examples.classes),
                              fmt::join(examples.classes, ", ")));
  std::vector<double> weights;
  for (auto const& name : examples.classes) {
    auto const count = std::ranges::count(examples.training, name, &Example::label);
    auto const* const given = asked.find(name);
    double const balanced = to_double(examples.training.size()) /
                            to_double(examples.classes.size() * std::max<std::size_t>(1, static_cast<std::size_t>(count)));
    weights.push_back(!asked.word.empty() ? balanced : given != nullptr ? given->weight : 1);
  }
  return weights;
}

}  // namespace

std::unique_ptr<Dataset> examples_data(Examples examples, std::shared_ptr<Tokenizer const> tokenizer, Index pool, std::uint64_t seed) {
  return std::make_unique<ExamplesDataset>(std::move(examples), std::move(tokenizer), pool, seed);
}

void join_texts(Dataset& data) {
  if (auto* const examples = dynamic_cast<ExamplesDataset*>(&data)) examples->join_texts();
}

bool ClassWeight::from_word(std::string_view text) {
  auto const number = parsed_number<double>(text);
  if (number) weight = *number;
  return number.has_value();
}

std::string ClassWeight::word() { return fmt::format("{}", weight); }

std::vector<Field> ExampleSource::fields() {
  class_weights.words = {"balanced"};
  return extended(
      source_fields(),
      {field(&class_weights, "class_weights",
             "factors of the classes in the training loss: {positive: 2}, or balanced: inverse to their frequency in training"),
       field(&tokenizer, "tokenizer", "tokenizer; for a pre-trained model, its own: {kind: run, from: …}"),
       field(&join, "join", "what a language model that answers by likelihood reads between text and option"),
       field(&pool, "pool", "number of consecutive batches whose examples are regrouped by length, to reduce padding; 1: no regrouping")
           .in(1, 1e6)});
}

std::unique_ptr<Dataset> open_examples_of(std::filesystem::path const& file, Choice const& data, std::vector<std::string> const& classes,
                                          std::string const& tokenizer, bool labelled, std::string const& run) {
  auto const* const files = dynamic_cast<FileExamples const*>(data.settings.get());
  if (files == nullptr)
    throw ConfigError(
        run, fmt::format("was trained on data of kind {}: a table has no meaning without the templates of kind examples", data.kind));
  Examples examples = files->read_other(file, classes, labelled);
  examples.join = files->join;
  return examples_data(std::move(examples), restore_tokenizer(tokenizer), 1, 0);
}

std::unique_ptr<Dataset> open_examples(ExampleSource& source, DataContext const& context) {
  Examples examples = source.read(context);
  examples.join = source.join;
  examples.weights = weights_of(source.class_weights, examples);
  DataContext noting = context;
  noting.tokenizer_files = &examples.files;
  auto const training = text_of(examples.training);
  auto tokenizer = make_tokenizer(source.tokenizer, training, noting, training + text_of(examples.held_out));
  return examples_data(std::move(examples), std::move(tokenizer), source.pool, context.seed);
}

}  // namespace heed
