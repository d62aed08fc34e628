#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

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
};

/// What the ledger says about one candidate among those of its base and metric.
struct Standing {
  std::size_t tried = 0, verdicts = 0, stand = 0;  ///< candidates; those better or worse; of these what stands after e-BH at 5 %
  bool stands = false;                             ///< this one's verdict
  std::optional<std::size_t> more;  ///< pairs more that would let it stand; nothing if it stands, has no verdict, or none would
};

/// Every candidate that was ever judged, in a file to which lines are appended; the last line on a candidate counts.
class Ledger {
 public:
  /// Reads it. Throws FileError for a damaged line.
  explicit Ledger(std::filesystem::path path);
  /// Appends, under a lock. Throws Error if it cannot be written.
  void add(LedgerEntry const& entry);
  /// Candidates in the order in which they were first tried, base by base.
  std::vector<std::vector<LedgerEntry>> by_base() const;
  Standing standing_of(LedgerEntry const& entry, Judgement const& judgement) const;

 private:
  void read();
  std::filesystem::path path_;
  std::vector<LedgerEntry> entries_;
};

/// "2 candidates tried against this base: 1 verdict stands after e-BH at 5 %, this one too".
std::string in_words(Standing const& standing);
nlohmann::ordered_json json_of(Standing const& standing);

/// `heed judge --ledger`: prints the candidates of each base, and writes a page with their evidence into judge-ledger in the output folder.
Exit show_ledger(JudgeOptions const& options);

}  // namespace heed
