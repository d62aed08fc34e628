#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "autograd/registry.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"

namespace heed {

/// Options of `heed bench`.
struct BenchOptions {
  std::string what;                   ///< a topic; empty: all
  std::vector<std::string> names;     ///< only these: attention's scores, aligns, reads or positions; gpt's train, forward, sample, …;
                                      ///< training: a YAML file and its replacements
  std::string size;                   ///< attention: BxHxTxd; gpt: a name; empty: the topic's own
  bool causal = false;                ///< attention: a query sees the keys up to its own position
  Index sees = 0;                     ///< attention: sliding window in tokens; 0: none
  double dropout = 0;                 ///< attention: dropout rate of the weights
  std::string precision = "float32";  ///< of products' factors: float32, bfloat16
  bool recompute = false;             ///< gpt, training: recompute each block in the backward pass
  double seconds = 0.5;               ///< time for repeating each measurement
  bool json = false;                  ///< one JSON object per line instead of a table
  Folders folders;                    ///< training: where the data are
};

/// A benchmark, declared beside its definition: `heed bench gpt`.
struct BenchTopic {
  std::string name, measures;
  void (*run)(BenchOptions const& options, std::ostream& out);
};

/// Measures, and writes each row to `out` as soon as it is available. Throws ConfigError for an unknown topic, name or size.
Exit bench(BenchOptions const& options, std::ostream& out);

}  // namespace heed
