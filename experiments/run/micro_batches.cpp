// The gradients of a step: its micro-batches, split among the ranks.

#include <chrono>
#include <numeric>
#include <optional>

#include "autograd/graph.hpp"
#include "experiments/run/ranks.hpp"
#include "experiments/run/system.hpp"
#include "experiments/run/train.hpp"

namespace heed {

namespace {

/// Number of tokens of "inputs", without padding.
std::int64_t tokens_of(Batch const& batch) {
  Tensor const lengths = batch.get("lengths");
  if (!lengths.defined()) return batch["inputs"].elements();
  auto const of_rows = lengths.data<std::int64_t>();
  return std::accumulate(of_rows.begin(), of_rows.end(), std::int64_t{0});
}

/// Counts its lifetime as waiting.
class Waiting {
 public:
  explicit Waiting(ExchangeCost& cost) : cost_(cost) {}
  ~Waiting() { cost_.seconds_waiting += seconds_since(began_); }
  Waiting(Waiting const&) = delete;
  Waiting& operator=(Waiting const&) = delete;

 private:
  ExchangeCost& cost_;
  std::chrono::steady_clock::time_point const began_ = std::chrono::steady_clock::now();
};

}  // namespace

double Trainer::Sums::loss() const { return std::accumulate(losses.begin(), losses.end(), 0.0); }

/// The micro-batches of a step that this rank computes. Every rank computes all of them if the step is observed, or if the model has an
/// estimator, which learns from all losses: then these see the same on every rank.
MicroBatches Trainer::own_part(Observer const* observer) const {
  std::int64_t const count = settings_.train.accumulate;
  bool const whole = observer != nullptr || estimator_;
  return whole ? MicroBatches{0, count} : part_of(count, ranks().rank(), ranks().size());
}

std::vector<Batch> Trainer::micro_batches(MicroBatches const& part) const {
  std::vector<Batch> batches;
  for (std::int64_t k = part.first; k < part.end; ++k)
    batches.push_back(data_->training(step_ * settings_.train.accumulate + k, settings_.train.batch, model_->context()));
  return batches;
}

/// Counts of these batches; `shared`: of the batches of all ranks. They are integers, so their sums are exact in any order.
Counts Trainer::counts(std::vector<Batch> const& batches, bool shared) {
  Counts own;
  for (Batch const& batch : batches) own += model_->counts(batch);
  if (!shared) return own;
  std::vector<double> numbers = own.targets;
  numbers.push_back(own.rows);
  Waiting const waiting(exchange_cost_);
  std::vector<double> const all = ranks().gathered(numbers);
  Counts sum;
  for (auto next = all.begin(); next != all.end(); next += std::ssize(numbers))
    sum += Counts{{next, next + std::ssize(own.targets)}, *(next + std::ssize(own.targets))};
  return sum;
}

Trainer::Sums Trainer::accumulate_gradients(MicroBatches const& part, Observer const* observer) {
  std::int64_t const count = settings_.train.accumulate;
  bool const shared = part.size() < count;
  std::vector<Batch> const batches = micro_batches(part);
  Counts const all = counts(batches, shared);
  GradientSum sum(parameters_, count, part);
  std::optional<GradientExchange> exchange;
  if (shared) exchange.emplace(parameters_, count, sum, exchange_cost_);
  Sums sums;
  if (estimator_) estimator_->begin_step();
  for (std::int64_t k = part.first; k < part.end; ++k) {
    Batch const& batch = batches[static_cast<std::size_t>(k - part.first)];
    Pass const pass = pass_for(step_ * count + k, observer);
    sums.tokens += static_cast<double>(tokens_of(batch));
    if (estimator_) {
      sums.losses.push_back(estimator_->accumulate(*model_, batch, pass, settings_.train.label_smoothing, all.targets.front()));
    } else {
      Tensor const loss = model_->loss(batch, pass, settings_.train.label_smoothing, all);
      std::optional<GradientReady> ready;
      if (exchange && k + 1 == part.end)
        ready.emplace([&](Tensor const& leaf) {
          auto const parameter = sum.index_of(leaf);
          if (!parameter) return;
          sum.join(*parameter);
          exchange->ready(*parameter);
        });
      loss.backward();
      sums.losses.push_back(loss.item());
    }
    sum.end_micro_batch();
  }
  return exchange ? gather(std::move(sums), *exchange) : sums;
}

/// The sums over all ranks; also ends the exchange of gradients.
Trainer::Sums Trainer::gather(Sums own, GradientExchange& exchange) {
  std::vector<bool> present = exchange.all_ready();
  std::vector<double> numbers = own.losses;
  numbers.push_back(own.tokens);
  numbers.insert(numbers.end(), present.begin(), present.end());
  Waiting const waiting(exchange_cost_);
  std::vector<double> const all = ranks().gathered(numbers);
  Sums sums;
  for (auto next = all.begin(); next != all.end(); next += std::ssize(numbers)) {
    auto const tokens = next + std::ssize(own.losses);
    sums.losses.insert(sums.losses.end(), next, tokens);
    sums.tokens += *tokens;
    for (std::size_t i = 0; i < present.size(); ++i) present[i] = present[i] || *(tokens + 1 + static_cast<std::ptrdiff_t>(i)) > 0;
  }
  exchange.finish(present);
  return sums;
}

}  // namespace heed
