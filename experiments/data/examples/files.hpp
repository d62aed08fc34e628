#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/data/examples/example.hpp"

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
  std::optional<Index> size;
  double unanswerable = 0;
  LeaveOut leave_out;

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  /// Throws FileError that begins "FILE:LINE: " for an invalid row, Error that begins with the key for an invalid description.
  Examples read(DataContext const& context) const override;
};

}  // namespace heed
