#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "experiments/run.hpp"

namespace heed {

/// What the command line says of a benchmark.
struct BenchOptions {
  std::string what;                   ///< a topic; empty: all
  std::vector<std::string> names;     ///< only these: attention's scores, aligns, reads or positions, gpt's train, forward, sample, …;
                                      ///< training: a YAML file, and what replaces its keys
  std::string size;                   ///< attention: BxHxTxd; gpt: a name; empty: the topic's own
  bool causal = false;                ///< attention: a query sees the keys up to its own place
  std::string precision = "float32";  ///< of the factors of products: float32, bfloat16
  bool recompute = false;             ///< gpt, training: run each block again for its gradient
  double seconds = 0.5;               ///< to repeat each measurement for
  bool json = false;                  ///< one JSON object a line instead of a table
  Places places;                      ///< training: where data are
};

/// Throws ConfigError that names the option, unless `name` is known.
void expect_known(std::string const& option, std::string const& name, std::vector<std::string> const& known);

/// Names of the topics.
std::vector<std::string> bench_topics();

/// Measures, and writes each row to `out` as soon as it is known. Throws ConfigError for a topic, name or size that does not exist.
Exit bench(BenchOptions const& options, std::ostream& out);

/// Attention alone, forward and with its gradients, over every score × align, read and position: milliseconds, and memory of the engine's
/// pool, beside scaled dot product attention.
void bench_attention(BenchOptions const& options, std::ostream& out);

/// A GPT of several sizes: a training step (forward, backward, clipping, AdamW), a forward pass, sampling token by token: milliseconds,
/// tokens a second, the share of the machine's peak in matrix products, and memory.
void bench_gpt(BenchOptions const& options, std::ostream& out);

/// A training step of any configuration, as `heed run` makes it, its data included: a row as bench_gpt()'s, tokens being those of the first
/// step, padding left out. Throws ConfigError without a file, and what running it throws; FileError if the data have too few batches.
void bench_training(BenchOptions const& options, std::ostream& out);

/// A training step as tokens, width, layers and vocabulary grow, with the exponents of time and memory; the price of recomputation.
void bench_scaling(BenchOptions const& options, std::ostream& out);

/// Single operations, and what the engine itself costs: microseconds, nanoseconds an element, the share of the machine's peak.
void bench_ops(BenchOptions const& options, std::ostream& out);

}  // namespace heed
