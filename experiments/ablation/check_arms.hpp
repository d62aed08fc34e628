#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/ablation/plan.hpp"

namespace heed {

class Trainer;

/// The files that trials have read: to be compared, those with the same file, or section `data` (`init`), must have read the same content.
class TrialsRead {
 public:
  /// Adds what a trial reads, or has read (files_read_in()). `by`: who reads it, in words.
  void add(LoadedExperiment const& trial, ReadFiles const& read, std::string const& by);
  /// Holds it against the files as they are now. Whether all are still where they were read. Throws FileError for one that cannot be read.
  bool hold_against_files();

  /// The files that were read with two contents: "text: words.txt with SHA-256 3f… (a-seed1-…), and words.txt with a1… (now)"; may be "".
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

/// Throws ConfigError if an arm never records the metric, or if what it varies makes another function of the weights that it begins with.
void check_arm(Ablation const& ablation, Arm const& arm, Trainer& trainer);

/// Builds data, model and optimizer of every arm that has not begun to train in the ablation's folder (`fresh`: of every arm), so that what
/// it lacks on this machine (data, memory) is reported before others are trained. Returns the distinct Trainer::remark()s. Throws as
/// Trainer does, with the arm's name, and FolderError if trials have read different content, or other content than is there now.
std::vector<std::string> check_arms(Ablation const& ablation, bool quiet, bool fresh = false);

}  // namespace heed
