#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "experiments/bench/bench.hpp"

namespace heed {

/// A model's work, and the number of tokens in it.
struct ModelWork {
  std::string what, size;
  double tokens;
  std::function<void()> run;
  bool recompute = false;
  std::optional<Index> critical_path = {};  ///< sequential operations of the loss
};

/// Writes the heading of a table of models; nothing for JSON.
void write_model_heading(std::string const& title, BenchOptions const& options, std::ostream& out);

/// Repeats the work and writes a row: milliseconds, tokens per second, operations of products and their share of the machine's peak, memory
/// (resident: since reset_resident_peak()).
void measure_model(ModelWork const& work, BenchOptions const& options, std::ostream& out);

}  // namespace heed
