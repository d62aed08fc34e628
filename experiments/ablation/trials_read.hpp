#pragma once

#include <map>
#include <string>

#include "experiments/ablation/plan.hpp"

namespace heed {

/// The files that the trials of an ablation have read. Results can be compared if all trials that read the same file, or have the same
/// section `data` (or `init`), have read the same content.
class TrialsRead {
 public:
  /// Adds the files that the trial's folder lists; none if the trial was not begun, or its folder is damaged.
  void add(LoadedExperiment const& trial);
  /// Adds what a trial reads. `by`: who reads it, in words.
  void add(LoadedExperiment const& trial, ReadFiles const& read, std::string const& by);
  /// Holds it against the files as they are now. Whether all are still where they were read. Throws FileError for one that cannot be read.
  bool hold_against_files();

  /// The files that were read with two contents, with both hashes: "text: words.txt with SHA-256 3f… (a-seed1-…), and words.txt with a1…
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
