#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "autograd/registry.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"
#include "nn/models/blocks.hpp"
#include "nn/optimizer.hpp"

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

/// Result of repeating a piece of work.
struct Measurement {
  double median_ms = 0, min_ms = 0, max_ms = 0;  ///< wall time of one repetition
  Index peak_bytes = 0;                          ///< peak of the engine's pool during one repetition, beyond what it held before
  double product_gflop = 0;                      ///< operations of the matrix products executed in one repetition, in 10⁹
  int repetitions = 0;

  /// 10⁹ operations of matrix products per second, from the median time.
  double gflops() const { return 1e3 * product_gflop / median_ms; }
};

/// Repeats `work` for about `seconds`, at least three times, after one warm-up. Throws what `work` throws.
Measurement measure_time(std::function<void()> const& work, double seconds);
/// Of a line of JSON: median_ms, min_ms, max_ms, repetitions.
nlohmann::ordered_json times_of(Measurement const& measured);

/// A piece of work's throughput relative to the machine's peak in matrix products with the current products(): that of products
/// [1536, 1536]², threaded like every product.
struct PeakShare {
  double peak_gflops = 0;  ///< 10⁹ operations per second
  double share = 0;
};

/// Measures the work and the peak alternately, the peak a quarter as long before and after (at least 0.05 s each), for about `seconds` and
/// at least five rounds, so that changes of the machine's speed affect both. Medians over the rounds; `gflop`: 10⁹ operations of products
/// in one repetition.
PeakShare share_of_peak(std::function<void()> const& work, double gflop, double seconds);

/// The process's peak resident memory since reset_resident_peak(), in bytes.
Index resident_peak();
/// Returns idle memory to the system and resets the peak to what is resident now.
void reset_resident_peak();

/// The number of the engine's threads: "1 thread", "2 threads".
std::string threads_in_words();

inline double megabytes(Index bytes) { return static_cast<double>(bytes) * 1e-6; }

/// A GPT and its batch: `context` is the model's, `tokens` the batch's length.
struct GptSize {
  std::string name;
  Index layers, heads, width, context, batch, tokens, vocabulary;
};

/// A GPT on one random batch, with AdamW and clipping: a training step without its data.
class GptSubject {
 public:
  GptSubject(GptSize size, bool recompute);

  /// Forward, backward, gradient norm, clipping and AdamW.
  void train();
  /// "train"; "forward": the loss alone; "sample": generates as many tokens as the batch is long, one by one, with the key-value cache.
  std::function<void()> work(std::string const& name);
  /// Tokens that it reads or writes.
  Index tokens_of(std::string const& name) const { return name == "sample" ? size_.tokens - 1 : size_.batch * size_.tokens; }

 private:
  Tensor loss() const;

  GptSize size_;
  bool recompute_;
  Parameters parameters_;
  std::unique_ptr<Gpt> model_;
  std::unique_ptr<Optimizer> optimizer_;
  Batch batch_;
};

}  // namespace heed
