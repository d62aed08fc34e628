#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/examples/dataset.hpp"

namespace heed {

/// Values of rows that are left out: `leave_out: {label: ["-"]}`.
struct LeaveOut : Settings {
  std::vector<std::string> label;
  std::vector<Field> fields() override { return {field(&label, "label", "labels of rows that are left out")}; }
};

/// Labelled examples from files with a description:
///
///     data: {kind: examples, training: train.tsv, validation: 0.1, header: true, text: "{review}", label: "{sentiment}"}
///     data: {kind: examples, training: rte/train.tsv, validation: rte/dev.tsv, header: true, text: "{sentence1}", second: "{sentence2}"}
///     data: {kind: examples, training: swag.csv, validation: 0.1, header: true, text: "{startphrase}", options: ["{ending0}", …]}
///     data: {kind: examples, training: squad/dev-v1.1.json, validation: 0.2}
///
/// A held-out share consists of whole articles (SQuAD) or of groups of examples with the same first text (with `answer`: passage), chosen
/// by their texts alone, not by the seed. Labels are compared as written.
struct FileExamples : ExampleSource {
  std::optional<std::string> name, training, validation, test, format;
  bool header = false;
  std::vector<std::string> columns;
  std::string encoding = "utf-8";
  std::string text = "{text}", label = "{label}";
  std::string second, answer, start;
  std::vector<std::string> options, classes, names;
  bool symmetric = false, exact_match = false;
  std::optional<Index> size, folds, fold;
  std::string split = "articles";
  double unanswerable = 0;
  LeaveOut leave_out;
  bool labelled = true;  ///< not a key: whether labels and answers are read

  std::vector<Field> source_fields() override;
  std::optional<std::string> contradiction() override;
  /// Throws FileError that begins "FILE:LINE: " for an invalid row, Error that begins with the key for an invalid description.
  Examples read(DataContext const& context) override;
  /// The examples of another file as `held_out`, by the same keys; `known`: the classes' names. The file's ending says its format, if it
  /// says one; without a header and without labels it may lack the label's column.
  Examples read_other(std::filesystem::path const& file, std::vector<std::string> const& known, bool with_labels) const;
};

/// Rows of text with one field per column.
struct Table {
  struct TableRow {
    std::vector<std::string> fields;
    std::size_t line;               ///< line of the file in which it begins, from 1
    std::vector<bool> absent = {};  ///< per column: an object's field that is not there; empty: all are
  };
  std::string path;
  std::vector<std::string> columns;
  std::vector<TableRow> rows;
  std::string remark = {};  ///< on a header that names the columns otherwise; "": none

  /// Throws FileError "PATH:LINE: message".
  [[noreturn]] void refuse(TableRow const& row, std::string const& message) const;
};

/// A format of files of labelled examples; a new one is a file with `Declared<ExampleFormat>`.
struct ExampleFormat {
  int order;  ///< in lists
  std::string name;
  std::string ending = {};                ///< of files that are in this format if none is given; "": none
  std::string help = {};                  ///< "": the name says all
  std::string sample = {};                ///< a file of two examples, with a header if it may have one, for tests
  std::vector<std::string> without = {};  ///< keys of FileExamples that mean nothing here
  std::string why = {};                   ///< what is said of them
  bool passages = false;                  ///< its examples are questions about passages
  /// What is missing or contradicts itself in other keys: a message that begins with the key, or nothing. Null: nothing ever does.
  std::function<std::optional<std::string>(FileExamples const& keys)> contradiction = {};
  /// The examples of a file's content; adds remarks on it. Throws FileError that names file and line.
  std::function<std::vector<SourcedExample>(std::string_view content, std::string const& path, FileExamples const& keys,
                                            std::vector<std::string>& remarks)>
      read = {};
  /// The table that is a file's content; null: files are no tables. Throws as `read` does.
  std::function<Table(std::string_view content, std::string const& path, FileExamples const& keys)> table = {};
  bool lacks(std::string const& key) const { return std::ranges::find(without, key) != without.end(); }
};

/// The lines, without what ends them; that of the last may be missing. Throws FileError for an empty one.
std::vector<std::string_view> lines_of(std::string_view text, std::string const& path);

/// The rows of comma-separated values (RFC 4180). Calls `refuse` with the line of a quote in the wrong place or never closed, and of an
/// empty line; null: these are taken as they come, and carriage returns between quotes alone.
std::vector<Table::TableRow> csv_rows(std::string_view text, std::function<void(std::size_t line, char const* why)> const& refuse = {});

/// The rows of a table's text, the first of which names the columns if there is a header. A table without headers takes the columns that
/// `table` has, or gives it all that its rows have.
using RowsOf = std::vector<Table::TableRow> (*)(std::string_view text, Table& table, bool header);

/// A format whose files are tables: rows become examples by the templates of the keys (`text: "{premise} Therefore: {hypothesis}"`; "{{"
/// and "}}" are literal braces).
///
/// A byte-order mark is skipped, and lines may end in CR LF. Reading throws FileError naming file and line for bytes that are not of the
/// encoding, an empty line, a row with more or fewer fields than columns, repeated column names, a header that was not announced or has the
/// columns in another order, a file without rows, a field that a row lacks, and an empty text; Error that begins with the key for an
/// unmatched brace and for a name that is not a column.
ExampleFormat table_format(ExampleFormat about, RowsOf rows);

}  // namespace heed
