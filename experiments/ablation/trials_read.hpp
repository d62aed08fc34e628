#pragma once

#include <map>
#include <string>

#include "experiments/ablation/plan.hpp"

namespace heed {

/// What the trials of an ablation have read. Their numbers can be compared if all that have read the same file, or have the same section
/// `data` (or `init`), have read the same content.
class TrialsRead {
 public:
  /// Adds what the trial's folder says; nothing if it was not begun, or is damaged.
  void add(LoadedExperiment const& trial);
  /// Adds what a trial reads. `by`: who reads it, in words.
  void add(LoadedExperiment const& trial, ReadFiles const& read, std::string const& by);
  /// Holds it against the files as they are now. Whether all are still where they were read. Throws FileError for one that cannot be read.
  bool hold_against_files();

  /// What was read with two contents, in words, with both hashes: "text: words.txt with SHA-256 3f… (a-seed1-…), and words.txt with a1…
  /// (now)"; empty if there is no such thing.
  std::string differences() const;

 private:
  struct ReadFile {
    std::string of;
    HashedFile file;
    std::string by;
  };
  void hold(std::string const& key, ReadFile const& seen);

  std::map<std::string, ReadFile> seen_;            ///< by path, and by section and role
  std::map<std::string, std::string> differences_;  ///< by both hashes
};

}  // namespace heed
