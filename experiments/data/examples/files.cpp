#include "experiments/data/examples/files.hpp"

#include <algorithm>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/data/catalogue.hpp"
#include "experiments/data/examples/dataset.hpp"
#include "experiments/data/examples/sourced_examples.hpp"
#include "experiments/data/examples/table.hpp"
#include "experiments/data/files.hpp"
#include "nn/files/sha256.hpp"

namespace heed {
namespace {

namespace fs = std::filesystem;

Declared<DataKind> const files_data{
    examples_kind<FileExamples>("examples", "labelled examples from files (TSV, CSV, JSON lines, SQuAD)", DataParts::validation_and_test)};

/// `0.1` where a path could stand too.
std::optional<double> share_of(std::optional<std::string> const& part) { return part ? parse_real(*part) : std::nullopt; }

std::string format_of(std::optional<std::string> const& format, fs::path const& path) {
  if (format) return *format;
  auto const ending = path.extension();
  return ending == ".tsv" ? "tsv" : ending == ".csv" ? "csv" : ending == ".jsonl" ? "jsonl" : ending == ".json" ? "squad" : "";
}

/// The first key that is missing or has no meaning in this format (`kind`; "": not known yet); nothing: all is right.
std::optional<std::string> wrong_format(FileExamples const& of, std::string const& kind) {
  for (auto const& [key, given] :
       {std::pair("columns", !of.columns.empty()), std::pair("header", of.header), std::pair("second", !of.second.empty()),
        std::pair("options", !of.options.empty()), std::pair("classes", !of.classes.empty()), std::pair("names", !of.names.empty()),
        std::pair("answer", !of.answer.empty()), std::pair("encoding", of.encoding != "utf-8"),
        std::pair("leave_out", !of.leave_out.label.empty())})
    if (kind == "squad" && given) return fmt::format("{}: is not used with SQuAD's format", key);
  bool const table = kind == "tsv" || kind == "csv" || kind == "blank";
  if (table && !of.header && of.columns.empty()) return "columns: name them, or say header: true if the first line does";
  if (kind == "blank" && of.columns.size() == 1) return "columns: beside one there is no label; the last is the rest of the line";
  if (kind == "jsonl" && of.header) return "header: JSON lines have none";
  if (of.unanswerable > 0 && !kind.empty() && kind != "squad" && of.answer.empty())
    return "unanswerable: the examples are not questions about passages";
  return std::nullopt;
}

/// The templates that make an example from the fields of a row.
struct Templates {
  Templates(FileExamples const& settings, Table const& table) {
    auto const made = [&](std::string const& written, std::string const& key) {
      return TextTemplate(written, "data." + key, table.columns, table.path);
    };
    auto const made_if = [&](std::string const& written, std::string const& key) {
      return written.empty() ? std::nullopt : std::optional(made(written, key));
    };
    first = made(settings.text, "text");
    second = made_if(settings.second, "second");
    answer = made_if(settings.answer, "answer");
    start = made_if(settings.start, "start");
    if (!answer) label = made(settings.label, "label");
    for (auto const& option : settings.options) options.push_back(made(option, "options"));
  }
  std::optional<TextTemplate> first, second, label, answer, start;
  std::vector<TextTemplate> options;
};

bool is_blank(std::string const& text) { return text.find_first_not_of(" \t\r\n") == text.npos; }

/// The text that a template makes of a row. Throws FileError if it is empty.
std::string filled(TextTemplate const& text, Table const& table, Table::TableRow const& row, char const* what) {
  auto made = text.of(table, row);
  if (is_blank(made)) table.refuse(row, fmt::format("the {} is empty", what));
  return made;
}

/// The byte of the passage at which the answer of a row begins.
Index start_of(std::string const& answer, std::string const& passage, Templates const& templates, Table const& table,
               Table::TableRow const& row) {
  if (!templates.start) {
    auto const found = passage.find(answer);
    if (found == passage.npos) table.refuse(row, fmt::format("the answer {} does not occur in the passage", shown(answer)));
    return static_cast<Index>(found);
  }
  auto const written = templates.start->of(table, row);
  auto const starts = character_starts(passage);
  auto const character = parse_integer(written);
  if (!character || *character < 0 || *character >= std::ssize(starts))
    table.refuse(row, fmt::format("the answer's start {} is not the number of a character of the passage, 0 … {}", shown(written),
                                  starts.size() - 2));
  auto const begin = at(starts, *character);
  if (passage.compare(begin, answer.size(), answer) != 0)
    table.refuse(row, fmt::format("the answer {} is not at character {} of the passage", shown(answer), *character));
  return static_cast<Index>(begin);
}

SourcedExample example_of(Table const& table, Table::TableRow const& row, Templates const& templates) {
  Example example;
  example.place = fmt::format("{}:{}", table.path, row.line);
  example.first = filled(*templates.first, table, row, "text");
  if (templates.second) example.second = filled(*templates.second, table, row, templates.answer ? "passage" : "second text");
  for (auto const& option : templates.options)
    example.options.push_back(filled(option, table, row, fmt::format("option {}", example.options.size()).c_str()));
  if (templates.label) example.label = filled(*templates.label, table, row, "label");
  if (templates.answer) {
    example.span = true;
    auto const answer = templates.answer->of(table, row);
    if (!answer.empty()) example.answers.push_back({answer, start_of(answer, example.second, templates, table, row)});
  }
  auto article = example.span ? example.second : example.first;
  auto id = fmt::format("{}\n{}", example.first, example.second);
  return {std::move(example), std::move(article), std::move(id)};
}

/// Where the parts are, and what is in them.
class Files {
 public:
  Files(FileExamples const& settings, DataContext const& context) : settings_(settings), context_(context) {
    if (settings.name) entry_ = &catalogue_entry(catalogue(), *settings.name);
  }

  /// The file of a part; nothing if there is none, or it is a share of another.
  std::optional<fs::path> path(std::string const& part, std::optional<std::string> const& given) const {
    if (given) return share_of(given) ? std::nullopt : std::optional(locate(*given, context_));
    if (entry_ == nullptr) return std::nullopt;
    auto const* file = entry_->part(part);
    if (file == nullptr && part == "train") file = entry_->part("text");
    return file == nullptr ? std::nullopt : std::optional(obtain(*file, context_));
  }

  /// Reads a file's examples, and notes its hash.
  std::vector<SourcedExample> read(fs::path const& path, std::string const& part) {
    auto const format = format_of(settings_.format, path);
    if (format.empty())
      throw Error(fmt::format("data.format: say how {} is written: tsv, csv, jsonl, blank or squad", path.filename().string()));
    if (auto const wrong = wrong_format(settings_, format)) throw Error("data." + *wrong);
    auto const content = read_text(path);
    read_[part] = {path.string(), sha256(std::as_bytes(std::span(content)))};
    if (format == "squad") return read_squad(content, path.string());
    auto const table = read_table(content, path.string(), {format, settings_.header, settings_.columns, settings_.encoding});
    Templates const templates(settings_, table);
    std::vector<SourcedExample> all;
    auto const& left_out = settings_.leave_out.label;
    for (auto const& row : table.rows)
      if (left_out.empty() || std::ranges::find(left_out, templates.label->of(table, row)) == left_out.end())
        all.push_back(example_of(table, row, templates));
    if (all.empty()) throw FileError(fmt::format("{}: data.leave_out leaves none of {} rows", path.string(), table.rows.size()));
    if (!left_out.empty())
      remarks_.push_back(
          fmt::format("{}: {} of {} rows are left out (data.leave_out)", path.string(), table.rows.size() - all.size(), table.rows.size()));
    if (!table.remark.empty()) remarks_.push_back(table.remark);
    return all;
  }
  ReadFiles const& hashes() const { return read_; }
  std::vector<std::string> const& remarks() const { return remarks_; }

 private:
  FileExamples const& settings_;
  DataContext const& context_;
  CatalogueEntry const* entry_ = nullptr;
  ReadFiles read_;
  std::vector<std::string> remarks_;
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
      throw FileError(fmt::format("{}: the label {} {}{}; there are {}", example.place, shown(example.label), known,
                                  did_you_mean(example.label, labels), fmt::join(labels, ", ")));
    }
    auto const number = static_cast<std::size_t>(found - labels.begin());
    if (!settings.options.empty())
      example.label = std::to_string(number);
    else if (!settings.names.empty())
      example.label = settings.names[number];
  }
}

std::vector<Example> plain(std::vector<SourcedExample>&& from) {
  std::vector<Example> all;
  for (auto& each : from) all.push_back(std::move(each.example));
  return all;
}

/// Takes the share that a key asks for out of the training examples.
std::vector<SourcedExample> taken(std::vector<SourcedExample>& training, std::string const& key, double share, std::size_t all) {
  auto const before = training.size();
  auto part = take_articles(training, share * static_cast<double>(all) / static_cast<double>(before));
  if (part.empty() || training.empty())
    throw FileError(fmt::format("data.{}: a share of {} of {} examples leaves {} for training; articles and equal texts stay together", key,
                                share, all, training.size()));
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
  return std::nullopt;
}

/// The first contradiction among the keys of the task; nothing: there is none.
std::optional<std::string> wrong_task(FileExamples const& of) {
  if (of.options.size() == 1) return "options: give two or more";
  if (!of.options.empty() && !of.classes.empty() && of.options.size() != of.classes.size())
    return fmt::format("classes: {} labels for {} options", of.classes.size(), of.options.size());
  if (!of.options.empty() && !of.names.empty()) return "names: options have no names";
  if (!of.answer.empty() && (!of.options.empty() || !of.classes.empty() || !of.names.empty()))
    return "answer: cannot be combined with classes or options";
  if (!of.answer.empty() && of.second.empty()) return "answer: is a span of `second`, which is not given";
  if (!of.start.empty() && of.answer.empty()) return "start: is the position of `answer`, which is not given";
  if (of.symmetric && of.second.empty()) return "symmetric: there is no second text";
  if (of.exact_match && of.second.empty() && format_of(of.format, of.training.value_or("")) != "squad")
    return "exact_match: there is no second text";
  for (auto const& [key, list] : {std::pair("classes", &of.classes), std::pair("names", &of.names)})
    if (std::set<std::string>(list->begin(), list->end()).size() != list->size()) return fmt::format("{}: has one twice", key);
  if (!of.leave_out.label.empty() && !of.answer.empty()) return "leave_out: questions have no label";
  if (of.classes.size() == 1) return "classes: give two or more";
  if (!of.names.empty() && !of.classes.empty() && of.names.size() != of.classes.size())
    return fmt::format("names: {} names for {} classes", of.names.size(), of.classes.size());
  return std::nullopt;
}

}  // namespace

std::vector<Field> FileExamples::fields() {
  std::string const file = " (relative to this file, then to the data folder)";
  return {
      field(&training, "training", "file of training examples" + file),
      field(&validation, "validation", "file of held-out examples, or the share of the training file that is held out"),
      field(&test, "test", "test file, or the share of the training file; never used in training"),
      field(&name, "name", "instead of files: a data set of the catalogue, fetched if needed"),
      field(&format, "format",
            "format of the files (default: by their extension); tsv: quotes are literal; blank: fields separated by blanks, the last is "
            "the rest of the line; squad: SQuAD's JSON, .json")
          .one_of({"tsv", "csv", "jsonl", "blank", "squad"}),
      field(&encoding, "encoding", "character encoding of tables").one_of({"utf-8", "latin1"}),
      field(&header, "header", "the first line of tsv, csv and blank names the columns"),
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
      field(&unanswerable, "unanswerable", "share of questions that are paired with a passage of another article, without an answer")
          .in(0, 1),
      field(&leave_out, "leave_out", "rows that are left out, and counted: {label: [\"-\"]}, those without a label")};
}

std::optional<std::string> FileExamples::contradiction() {
  for (auto const& wrong : {wrong_parts(*this), wrong_format(*this, format_of(format, training.value_or(""))), wrong_task(*this)})
    if (wrong) return wrong;
  return std::nullopt;
}

Examples FileExamples::read(DataContext const& context) const {
  Files files(*this, context);
  auto train = files.read(*files.path("train", training), "training");
  std::vector<SourcedExample> held_out, test_part;
  auto const all = train.size();
  if (auto const share = share_of(validation)) held_out = taken(train, "validation", *share, all);
  if (auto const share = share_of(test)) test_part = taken(train, "test", *share, all);
  if (auto const path = files.path("validation", validation)) held_out = files.read(*path, "held_out");
  if (context.held_out == "test") {
    if (auto const path = files.path("test", test)) test_part = files.read(*path, "test");
    if (test_part.empty()) throw Error("data.test: there is no test part; name its file, or a share of the training file");
    held_out = std::move(test_part);
  }
  Examples examples;
  examples.symmetric = symmetric;
  examples.exact_match = exact_match;
  examples.files = files.hashes();
  if (!train.front().example.span) {
    auto const labels = labels_of(*this, train);
    if (!names.empty() && names.size() != labels.size())
      throw Error(fmt::format("data.names: {} names for {} classes: {}", names.size(), labels.size(), fmt::join(labels, ", ")));
    if (options.empty() && labels.size() < 2)
      throw FileError(fmt::format("{}: all labels are {}", train.front().example.place, shown(labels[0])));
    for (auto* const part : {&train, &held_out}) rename_labels(*part, labels, *this);
    if (options.empty()) examples.classes = names.empty() ? labels : names;
  }
  if (unanswerable > 0)
    for (auto* const part : {&train, &held_out}) make_unanswerable(*part, unanswerable);
  examples.training = plain(std::move(train));
  examples.held_out = plain(std::move(held_out));
  if (size && *size > std::ssize(examples.training))
    throw Error(fmt::format("data.size: there are {} training examples", examples.training.size()));
  if (size) examples.training = sample_of(examples.training, *size, context.seed);
  examples.remarks = files.remarks();
  examples.remarks = remarks_on(examples);
  return examples;
}

}  // namespace heed
