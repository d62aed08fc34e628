#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "autograd/index.hpp"

namespace heed {

/// Folders in which a command looks for files.
struct Folders {
  std::filesystem::path output = "runs";
  std::filesystem::path data;           ///< `--data`; empty: $HEED_DATA, then the cache folder
  std::filesystem::path config_folder;  ///< folder of the configuration file, for relative paths in it
  std::filesystem::path runs = {};      ///< where runs named in a file are looked for; empty: in `output`
};

/// Which trained model a command reads.
struct ChosenRun {
  std::filesystem::path run;  ///< a run's folder or its checkpoint, or the run's name in the output folder
  Folders folders;
  std::string weights;  ///< last, average, best; empty: the default of open_run()
};

/// What the command line says about a run, besides the file.
struct RunOptions {
  std::filesystem::path config;
  std::vector<std::string> overrides;  ///< key.path=value
  Folders folders;
  bool quiet = false;
  bool fresh = false;            ///< move an old folder of the same name aside and start anew
  std::optional<Index> jobs;     ///< parallel trials of an ablation; default: cores / threads
  std::optional<Index> threads;  ///< default: 1 per trial of an ablation and per rank, else all cores
  std::optional<double> within;  ///< seconds after which trials of an ablation save a checkpoint and end; default: no limit
  std::string shard;             ///< --shard I/N, also in `overrides`
  bool slurm = false;            ///< `heed plan`: a script for Slurm instead of a table
  std::optional<Index> tasks;    ///< processes of that script that share the trials; default: as many as trials, at most 1,000
  std::optional<Index> shards;   ///< or shards, each in a folder of its own
};

}  // namespace heed
