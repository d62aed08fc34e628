#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

class DecodedExact : public Metric {
 public:
  void add(EvaluatedBatch const& seen) override {
    auto const& decoded = seen.decoded();
    for (std::size_t row = 0; row < decoded.size(); ++row) {
      right_ += decoded[row].ended && decoded[row].tokens == target_of(seen.batch(), static_cast<std::int64_t>(row)) ? 1 : 0;
      rows_ += 1;
    }
  }
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + ".decoded.exact", right_ / rows_); }

 private:
  double right_ = 0, rows_ = 0;
};

Declared<MetricKind> const declared{{.info = {"decoded.exact",
                                              "",
                                              Better::higher,
                                              "share of the sources that are decoded to their target, word by word to its end",
                                              {.least = 0, .greatest = 1}},
                                     .unavailable = no_decoding,
                                     .make = [](Dataset const&) { return std::make_unique<DecodedExact>(); }}};

}  // namespace

}  // namespace heed
