#pragma once

#include <optional>

#include "autograd/random.hpp"
#include "experiments/data/open.hpp"

namespace heed {

/// `data: {kind: recall, pairs: 8, keys: 16, values: 16, queries: 8}`.
struct RecallSettings : Settings {
  std::int64_t pairs = 8;
  std::int64_t keys = 16;
  std::int64_t values = 16;
  std::optional<std::int64_t> queries;  ///< default: as many as pairs
  std::int64_t validation = 1'000;

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// Multi-query associative recall (Arora et al. 2023, "Zoology"): key–value pairs, then keys whose values are asked for.
/// Token 0 is a blank, 1 … keys are the keys, and the values follow.
class RecallDataset : public Dataset {
 public:
  RecallDataset(RecallSettings const& settings, std::uint64_t seed);

  std::int64_t vocabulary() const override { return 1 + settings_.keys + settings_.values; }
  /// Row r is drawn from Stream(seed, "data").child(index · batch + r).
  Batch training(std::int64_t index, std::int64_t batch, std::int64_t context) const override;
  std::int64_t validation_batches(std::int64_t batch, std::int64_t context) const override;
  Batch validation(std::int64_t index, std::int64_t batch, std::int64_t context) const override;
  bool poses_task() const override { return true; }

  std::optional<std::vector<std::int64_t>> encode(std::string const&) const override { return std::nullopt; }
  std::optional<std::string> decode(std::vector<std::int64_t> const&) const override { return std::nullopt; }
  nlohmann::json describe() const override;
  /// {"chance", ln values}: what comes of guessing.
  std::vector<std::pair<std::string, double>> yardsticks() const override;

 private:
  Batch rows(Stream const& stream, std::int64_t first, std::int64_t count, std::int64_t context) const;

  RecallSettings settings_;
  std::int64_t queries_;
  std::uint64_t seed_;
};

}  // namespace heed
