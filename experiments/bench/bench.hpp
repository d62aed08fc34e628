#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "autograd/registry.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// What the command line says of a benchmark.
struct BenchOptions {
  std::string what;                   ///< a topic; empty: all
  std::vector<std::string> names;     ///< only these: attention's scores, aligns, reads or positions, gpt's train, forward, sample, …;
                                      ///< training: a YAML file, and what replaces its keys
  std::string size;                   ///< attention: BxHxTxd; gpt: a name; empty: the topic's own
  bool causal = false;                ///< attention: a query sees the keys up to its own place
  double dropout = 0;                 ///< attention: the part of the weights that is dropped
  std::string precision = "float32";  ///< of the factors of products: float32, bfloat16
  bool recompute = false;             ///< gpt, training: run each block again for its gradient
  double seconds = 0.5;               ///< to repeat each measurement for
  bool json = false;                  ///< one JSON object a line instead of a table
  Places places;                      ///< training: where data are
};

/// Throws ConfigError that names the option, unless `name` is known.
void expect_known(std::string const& option, std::string const& name, std::vector<std::string> const& known);

/// A benchmark, declared beside its definition: `heed bench gpt`.
struct BenchTopic {
  std::string name, measures;
  void (*run)(BenchOptions const& options, std::ostream& out);
};

/// Measures, and writes each row to `out` as soon as it is known. Throws ConfigError for a topic, name or size that does not exist.
Exit bench(BenchOptions const& options, std::ostream& out);

}  // namespace heed
