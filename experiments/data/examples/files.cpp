#include "experiments/data/examples/files.hpp"

#include <algorithm>
#include <initializer_list>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/data/catalogue.hpp"
#include "experiments/data/files.hpp"
#include "nn/files/sha256.hpp"

namespace heed {
namespace {

Declared<DataKind> const files_data{
    examples_kind<FileExamples>("examples", "labelled examples from files (TSV, CSV, JSON lines, SQuAD)", DataParts::validation_and_test)};

/// `0.1` where a path could stand too.
std::optional<double> share_of(std::optional<std::string> const& part) { return part ? parse_real(*part) : std::nullopt; }

ExampleFormat const* format_of(std::optional<std::string> const& name, fs::path const& path) {
  auto const& all = Registry<ExampleFormat>::all();
  auto const found = std::ranges::find_if(
      all, [&](ExampleFormat const& each) { return name ? each.name == *name : !each.ending.empty() && path.extension() == each.ending; });
  return found == all.end() ? nullptr : &*found;
}

/// "tsv, csv or jsonl": the formats, or those that have a key.
std::string formats(std::string const& last, std::string const& key = "") {
  std::vector<std::string> names;
  for (ExampleFormat const& each : Registry<ExampleFormat>::all())
    if (!each.lacks(key)) names.push_back(each.name);
  return listed(names, last);
}

/// The first key that is missing or has no meaning in this format; nothing: all is right.
std::optional<std::string> wrong_format(FileExamples const& of, ExampleFormat const& format) {
  auto const written = [](FileExamples keys, std::string const& key) {
    Yaml const all = tree(keys);
    auto const* const value = all.find(key);
    return value == nullptr ? "" : emit_line(*value);
  };
  for (auto const& key : format.without)
    if (written(of, key) != written({}, key)) return fmt::format("{}: {}", key, format.why);
  if (auto const wrong = format.contradiction ? format.contradiction(of) : std::nullopt) return wrong;
  if (of.unanswerable > 0 && !format.passages && of.answer.empty()) return "unanswerable: the examples are not questions about passages";
  return std::nullopt;
}

/// Where the parts are, and what is in them; of `examples` what the keys say, and the files and remarks of what was read.
class Files {
 public:
  Files(FileExamples const& settings, DataContext const& context) : settings_(settings), context_(context) {
    if (settings.name) entry_ = &catalogue_entry(catalogue(), *settings.name);
    examples.symmetric = settings.symmetric;
    examples.exact_match = settings.exact_match;
  }

  /// The file of a part; nothing if there is none, or it is a share of another.
  std::optional<fs::path> path(std::string const& part, std::optional<std::string> const& given) const {
    if (given) return share_of(given) ? std::nullopt : std::optional(locate(*given, context_));
    if (entry_ == nullptr) return std::nullopt;
    auto const* file = entry_->part(part);
    if (file == nullptr && part == "train") file = entry_->part("text");
    return file == nullptr ? std::nullopt : std::optional(obtain(*file, context_));
  }

  /// Reads a file's examples, and notes its hash and remarks.
  std::vector<SourcedExample> read(fs::path const& path, std::string const& part) {
    auto const* const format = format_of(settings_.format, path);
    if (format == nullptr) throw Error(fmt::format("data.format: say how {} is written: {}", path.filename().string(), formats("or")));
    if (auto const wrong = wrong_format(settings_, *format)) throw Error("data." + *wrong);
    auto const content = read_text(path);
    examples.files[part] = {path.string(), sha256(content)};
    return format->read(content, path.string(), settings_, examples.remarks);
  }

  Examples examples;

 private:
  FileExamples const& settings_;
  DataContext const& context_;
  CatalogueEntry const* entry_ = nullptr;
};

/// The labels as written in the files, in the order of their numbers.
std::vector<std::string> labels_of(FileExamples const& settings, std::vector<SourcedExample> const& training) {
  if (!settings.classes.empty()) return settings.classes;
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < settings.options.size(); ++i) labels.push_back(std::to_string(i));
  if (!labels.empty()) return labels;
  std::set<std::string> found;
  for (auto const& each : training) found.insert(each.example.label);
  labels.assign(found.begin(), found.end());
  if (std::ranges::all_of(labels, [](auto const& label) { return parse_integer(label).has_value(); }))
    std::ranges::sort(labels, {}, [](auto const& label) { return *parse_integer(label); });
  return labels;
}

/// Replaces labels as they are written by what they are called here. Throws FileError for one that is not known.
void rename_labels(std::vector<SourcedExample>& examples, std::vector<std::string> const& labels, FileExamples const& settings) {
  for (auto& [example, article, id] : examples) {
    auto const found = std::ranges::find(labels, example.label);
    if (found == labels.end()) {
      auto const* const known = !settings.options.empty()  ? "is not the number of an option"
                                : settings.classes.empty() ? "does not occur in the training examples"
                                                           : "is not one of data.classes";
      throw FileError(fmt::format("{}: the label {} {}{}; there are {}", example.location, shown(example.label), known,
                                  did_you_mean(example.label, labels), fmt::join(labels, ", ")));
    }
    auto const number = static_cast<std::size_t>(found - labels.begin());
    if (!settings.options.empty())
      example.label = std::to_string(number);
    else if (!settings.names.empty())
      example.label = settings.names[number];
  }
}

/// The keys without the column that alone is the label, or the answer.
FileExamples without_label(FileExamples keys) {
  auto const& written = keys.answer.empty() ? keys.label : keys.answer;
  std::erase_if(keys.columns, [&](auto const& column) { return written == "{" + column + "}"; });
  return keys;
}

std::vector<Example> plain(std::vector<SourcedExample>&& from) {
  std::vector<Example> all;
  for (auto& each : from) all.push_back(std::move(each.example));
  return all;
}

/// Takes the share of `all` examples that a key asks for out of the training examples.
std::vector<SourcedExample> taken(std::vector<SourcedExample>& training, std::string const& key, double share, std::size_t all,
                                  bool stratified) {
  double const of_rest = share * to_double(all) / to_double(training.size());
  auto part = (stratified ? take_stratified : take_articles)(training, of_rest);
  if (part.empty() || training.empty())
    throw FileError(fmt::format("data.{}: a share of {} of {} examples leaves {} for training; articles and equal texts stay together", key,
                                share, all, training.size()));
  return part;
}

/// Takes the fold that is held out.
std::vector<SourcedExample> taken(std::vector<SourcedExample>& training, Index fold, Index folds, bool stratified) {
  auto const all = training.size();
  auto part = take_fold(training, fold, folds, stratified);
  if (part.empty() || training.empty())
    throw FileError(fmt::format("data.folds: fold {} of {} of {} examples holds {}; articles and equal texts stay together", fold, folds,
                                all, part.size()));
  return part;
}

/// The first error in the keys that name the parts (training, validation, test); nothing: there is none.
std::optional<std::string> wrong_parts(FileExamples const& of) {
  auto const is_file = [](std::optional<std::string> const& part) { return part && !share_of(part); };
  if (of.name && (of.training || is_file(of.validation) || is_file(of.test)))
    return "name: give either files or the name of a data set, of which shares may be held out";
  if (!of.name && !of.training) return "training: give a file, or the name of a data set of the catalogue";
  for (auto const& [key, part] : {std::pair("validation", &of.validation), std::pair("test", &of.test)})
    if (auto const share = share_of(*part); share && (*share <= 0 || *share > 0.9)) return fmt::format("{}: a share is > 0 and ≤ 0.9", key);
  if (of.folds && of.validation) return "validation: is one of the folds; leave it out";
  if (of.folds.has_value() != of.fold.has_value())
    return of.folds ? "folds: needs fold, the number of the one held out" : "fold: needs folds";
  if (of.fold && *of.fold >= *of.folds) return fmt::format("fold: there are {} folds, from 0 on", *of.folds);
  bool const shares = of.folds || share_of(of.validation) || share_of(of.test);
  if (of.split != "articles" && !shares) return "split: there is nothing to split: no share and no folds";
  return std::nullopt;
}

/// The first contradiction among the keys of the task; nothing: there is none. `passages`: the format's examples have a second text.
std::optional<std::string> wrong_task(FileExamples const& of, bool passages) {
  auto const twice = [](std::vector<std::string> const& list) { return std::set(list.begin(), list.end()).size() != list.size(); };
  bool const options = !of.options.empty(), classes = !of.classes.empty(), names = !of.names.empty(), answer = !of.answer.empty();
  bool const second = !of.second.empty();
  for (auto const& [wrong, message] : std::initializer_list<std::pair<bool, std::string>>{
           {of.options.size() == 1, "options: give two or more"},
           {options && classes && of.options.size() != of.classes.size(),
            fmt::format("classes: {} labels for {} options", of.classes.size(), of.options.size())},
           {options && names, "names: options have no names"},
           {answer && (options || classes || names), "answer: cannot be combined with classes or options"},
           {answer && !second, "answer: is a span of `second`, which is not given"},
           {!of.start.empty() && !answer, "start: is the position of `answer`, which is not given"},
           {of.symmetric && !second, "symmetric: there is no second text"},
           {of.exact_match && !second && !passages, "exact_match: there is no second text"},
           {twice(of.classes), "classes: has one twice"},
           {twice(of.names), "names: has one twice"},
           {answer && !of.leave_out.label.empty(), "leave_out: questions have no label"},
           {of.classes.size() == 1, "classes: give two or more"},
           {names && classes && of.names.size() != of.classes.size(),
            fmt::format("names: {} names for {} classes", of.names.size(), of.classes.size())}})
    if (wrong) return message;
  return std::nullopt;
}

}  // namespace

std::vector<Field> FileExamples::source_fields() {
  std::string const file = " (relative to this file, then to the data folder)";
  std::string help = "format of the files (default: by their extension)";
  for (ExampleFormat const& each : Registry<ExampleFormat>::all())
    if (!each.help.empty()) help += fmt::format("; {}: {}", each.name, each.help);
  return {field(&training, "training", "file of training examples" + file),
          field(&validation, "validation", "file of held-out examples, or the share of the training file that is held out"),
          field(&test, "test", "test file, or the share of the training file; never used in training"),
          field(&name, "name", "instead of files: a data set of the catalogue, fetched if needed"),
          field(&format, "format", help).one_of(Registry<ExampleFormat>::names()),
          field(&encoding, "encoding", "character encoding of tables").one_of({"utf-8", "latin1"}),
          field(&header, "header", fmt::format("the first line of {} names the columns", formats("and", "header"))),
          field(&columns, "columns", "names of the columns (default: those of the header or of the first JSON object)"),
          field(&text, "text", "the text, or the first of two, with columns in braces: \"{sentence}\""),
          field(&second, "second", "the second text of a pair; with `answer` the passage, and `text` is the question"),
          field(&label, "label", "the class; for a multiple choice the number of the right option, from 0"),
          field(&options, "options", "the options of a multiple choice"),
          field(&classes, "classes",
                "labels in the order of their numbers (default: those of the training examples, sorted; for options 0, 1, …)"),
          field(&names, "names", "displayed names of the classes, in the order of `classes`"),
          field(&symmetric, "symmetric", "the two texts have no order: similarity, paraphrase"),
          field(&exact_match, "exact_match",
                "for bert: a third segment marks tokens of the second text that also occur in the first (Chen et al. 2017)"),
          field(&answer, "answer", "span of the second text that answers the first; empty: no answer"),
          field(&start, "start", "the answer's first character, from 0 (default: its first occurrence)"),
          field(&size, "size",
                "number of training examples, sampled by the seed, stratified by label; a larger sample contains the smaller ones")
              .in(1, 1e9),
          field(&split, "split",
                "how shares and folds are held out: whole articles and groups of equal texts, or single rows of which each "
                "label has its share, within one row")
              .one_of({"articles", "stratified"}),
          field(&folds, "folds", "cross-validation: number of parts of the training file, one of which is held out").in(2, 1000),
          field(&fold, "fold", "the part that is held out, from 0; in an ablation vary: {data.fold: [0, 1, 2, 3, 4]}").in(0, 999),
          field(&unanswerable, "unanswerable", "share of questions that are paired with a passage of another article, without an answer")
              .in(0, 1),
          field(&leave_out, "leave_out", "rows that are left out, and counted: {label: [\"-\"]}, those without a label")};
}

std::optional<std::string> FileExamples::contradiction() {
  auto const* const known = format_of(format, training.value_or(""));
  if (auto const wrong = wrong_parts(*this)) return wrong;
  if (auto const wrong = known != nullptr ? wrong_format(*this, *known) : std::nullopt) return wrong;
  return wrong_task(*this, known != nullptr && known->passages);
}

Examples FileExamples::read_other(fs::path const& file, std::vector<std::string> const& known, bool with_labels) const {
  FileExamples keys = *this;
  keys.labelled = with_labels;
  keys.name.reset();
  if (!with_labels) keys.leave_out = {};
  if (auto const* const by_ending = format_of({}, file)) {
    keys.format = by_ending->name;
    if (by_ending->lacks("header")) keys.header = false;
    if (by_ending->lacks("columns")) keys.columns.clear();
  }
  FileExamples const fewer = without_label(keys);
  DataContext const context;
  std::optional<Files> files;
  std::vector<SourcedExample> all;
  if (!with_labels && !keys.header && fewer.columns != keys.columns) {
    try {
      all = files.emplace(fewer, context).read(file, "table");
    } catch (FileError const&) {  // it has the column
    }
  }
  if (all.empty()) all = files.emplace(keys, context).read(file, "table");
  if (with_labels && !all.front().example.span) {
    if (classes.empty()) keys.classes = known, keys.names.clear();
    rename_labels(all, labels_of(keys, all), keys);
  }
  Examples examples = std::move(files->examples);
  examples.classes = known;
  examples.held_out = plain(std::move(all));
  examples.training = {examples.held_out.front()};  // which data without any would not be
  return examples;
}

Examples FileExamples::read(DataContext const& context) {
  Files files(*this, context);
  auto train = files.read(*files.path("train", training), "training");
  std::vector<SourcedExample> held_out, test_part;
  auto const all = train.size();
  bool const stratified = split == "stratified";
  if (auto const share = share_of(validation)) held_out = taken(train, "validation", *share, all, stratified);
  if (auto const share = share_of(test)) test_part = taken(train, "test", *share, all, stratified);
  if (folds) held_out = taken(train, *fold, *folds, stratified);
  if (auto const path = files.path("validation", validation)) held_out = files.read(*path, "held_out");
  if (context.held_out == "test") {
    if (auto const path = files.path("test", test)) test_part = files.read(*path, "test");
    if (test_part.empty()) throw Error("data.test: there is no test part; name its file, or a share of the training file");
    held_out = std::move(test_part);
  }
  Examples examples = std::move(files.examples);
  if (!train.front().example.span) {
    auto const labels = labels_of(*this, train);
    if (!names.empty() && names.size() != labels.size())
      throw Error(fmt::format("data.names: {} names for {} classes: {}", names.size(), labels.size(), fmt::join(labels, ", ")));
    if (options.empty() && labels.size() < 2)
      throw FileError(fmt::format("{}: all labels are {}", train.front().example.location, shown(labels[0])));
    for (auto* const part : {&train, &held_out}) rename_labels(*part, labels, *this);
    if (options.empty()) examples.classes = names.empty() ? labels : names;
  }
  if (unanswerable > 0)
    for (auto* const part : {&train, &held_out}) make_unanswerable(*part, unanswerable);
  if (size && *size > std::ssize(train)) throw Error(fmt::format("data.size: there are {} training examples", train.size()));
  examples.training = plain(size ? sample_of(train, *size, context.seed) : std::move(train));
  examples.held_out = plain(std::move(held_out));
  examples.remarks = remarks_on(examples);
  return examples;
}

}  // namespace heed
