#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/judge/judge.hpp"

namespace heed {

/// A candidate that was judged against a base: a line of judge.jsonl.
struct LedgerEntry {
  std::string base, base_name;  ///< SHA-256 of its configuration, without name and seed
  std::string candidate, name;  ///< the same
  std::string metric, verdict;
  std::size_t pairs = 0;
  double e = 1, p = 1;
  std::optional<double> difference;  ///< nothing if it is infinite
  std::string folder, revision, time;

  void take(Judgement const& judgement, Material const& result);
  bool has_verdict() const { return verdict == "better" || verdict == "worse"; }
};

/// The candidates of one base and metric, in the order in which they were first tried.
struct Candidates : std::vector<LedgerEntry> {
  bool are_like(LedgerEntry const& entry) const { return front().base == entry.base && front().metric == entry.metric; }
  std::vector<bool> stands() const;  ///< by candidate: a verdict that e-BH at 5 % over all of them keeps (standing())
  std::string title() const;         ///< "recall 47239250, validation.loss"
  /// "3 candidates tried against this base: of 2 verdicts 1 stands after e-BH at 5 %".
  std::string in_words() const;
};

/// Every candidate that was ever judged, in a file to which lines are appended; of a candidate's lines the last counts. Throws FileError
/// for a damaged line.
std::vector<Candidates> read_ledger(std::filesystem::path const& path);
/// Appends a line, under a lock. Throws Error if it cannot be written.
void append(std::filesystem::path const& path, LedgerEntry const& entry);

/// How many pairs more would let a candidate's verdict stand; nothing if it stands, is none, or no number would.
std::optional<std::size_t> pairs_to_stand(Candidates const& candidates, LedgerEntry const& entry, Judgement const& judgement);

/// `heed judge --ledger`: prints the candidates of each base, and writes a page with their evidence into judge-ledger in the output folder.
Exit show_ledger(JudgeOptions const& options);

}  // namespace heed
