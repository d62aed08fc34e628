// Multi-query associative recall. Four keys a … d, four values 0 … 3, three pairs, two queries, a context of ten tokens:
//
//     inputs    b 2 d 0 a 2 · d · b        pairs, then queries at random places among blanks
//     targets               · 0 · 2        the value of each key that is asked for; nothing else counts
//
// The keys of a row differ, values may repeat, and no key is asked for twice before all have been. The task needs a look back at a token
// that stood *after* an equal one: one attention layer cannot do it, two can (Olsson et al. 2022).

#include "experiments/data/recall.hpp"

#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "autograd/random.hpp"

namespace heed {

namespace {

constexpr std::int64_t blank = 0;

std::unique_ptr<Dataset> open_recall(RecallSettings const& settings, DataContext const& context) {
  return std::make_unique<RecallDataset>(settings, context.seed);
}

bool const registered = register_data("recall", "multi-query associative recall: pairs, then keys whose values are asked for", open_recall);

/// `count` different numbers of 0 … n − 1 in random order (the beginning of a Fisher–Yates shuffle).
std::vector<std::int64_t> drawn(Stream const& stream, std::int64_t count, std::int64_t n) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) std::swap(all[i], all[i + stream.below(i, all.size() - i)]);
  all.resize(static_cast<std::size_t>(count));
  return all;
}

}  // namespace

std::vector<Field> RecallSettings::fields() {
  return {{.name = "pairs", .target = &pairs, .help = "of a key and a value in a row", .least = 1, .greatest = 1e6},
          {.name = "keys", .target = &keys, .help = "number of different keys", .least = 1, .greatest = 1e6},
          {.name = "values", .target = &values, .help = "number of different values", .least = 2, .greatest = 1e6},
          {.name = "queries",
           .target = &queries,
           .help = "keys whose values are asked for in a row (default: as many as pairs); model.context ≥ 2·pairs + queries",
           .least = 1,
           .greatest = 1e6},
          {.name = "validation",
           .target = &validation,
           .help = "number of held-out rows, the same for every seed",
           .least = 1,
           .greatest = 1e6}};
}

std::optional<std::string> RecallSettings::contradiction() {
  if (pairs <= keys) return std::nullopt;
  return fmt::format("pairs: the keys of a row differ, but of {} keys there are no {} different ones", keys, pairs);
}

RecallDataset::RecallDataset(RecallSettings const& settings, std::uint64_t seed)
    : settings_(settings), queries_(settings.queries.value_or(settings.pairs)), seed_(seed) {}

Batch RecallDataset::rows(Stream const& stream, std::int64_t first, std::int64_t count, std::int64_t context) const {
  auto const length = 2 * settings_.pairs + queries_;
  if (context < length)
    throw Error(fmt::format("model.context: {} is too short for {} pairs and {} queries; make it {} or more", context, settings_.pairs,
                            queries_, length));
  Batch result{Tensor::full({count, context}, blank, DType::int64), Tensor::full({count, context}, -1, DType::int64), {}, {}};
  for (std::int64_t row = 0; row < count; ++row) {
    auto const begin = static_cast<std::size_t>(row * context), size = static_cast<std::size_t>(context);
    auto const inputs = result.inputs.mutable_data<std::int64_t>().subspan(begin, size);
    auto const targets = result.targets.mutable_data<std::int64_t>().subspan(begin, size);
    Stream const draws = stream.child(static_cast<std::uint64_t>(first + row));

    auto const keys = drawn(draws.child("keys"), settings_.pairs, settings_.keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      inputs[2 * i] = 1 + keys[i];
      inputs[2 * i + 1] =
          1 + settings_.keys + static_cast<std::int64_t>(draws.child("values").below(i, static_cast<std::uint64_t>(settings_.values)));
    }
    auto const places = drawn(draws.child("places"), queries_, context - 2 * settings_.pairs);
    std::vector<std::int64_t> asked;
    for (std::size_t i = 0; i < places.size(); ++i) {
      auto const round = i / keys.size();
      if (i % keys.size() == 0) asked = drawn(draws.child("queries").child(round), settings_.pairs, settings_.pairs);
      auto const pair = 2 * static_cast<std::size_t>(asked[i % keys.size()]);
      auto const place = static_cast<std::size_t>(2 * settings_.pairs + places[i]);
      inputs[place] = inputs[pair];
      targets[place] = inputs[pair + 1];
    }
  }
  return result;
}

Batch RecallDataset::training(std::int64_t index, std::int64_t batch, std::int64_t context) const {
  return rows(Stream(seed_, "data"), index * batch, batch, context);
}

std::int64_t RecallDataset::validation_batches(std::int64_t batch, std::int64_t) const {
  return (settings_.validation + batch - 1) / batch;
}

Batch RecallDataset::validation(std::int64_t index, std::int64_t batch, std::int64_t context) const {
  auto const first = index * batch, count = std::min(batch, settings_.validation - first);
  if (index < 0 || count <= 0)
    throw Error(fmt::format("validation batch {} of {} does not exist", index, validation_batches(batch, context)));
  return rows(Stream(0, "recall.held_out"), first, count, context);
}

std::vector<std::pair<std::string, double>> RecallDataset::yardsticks() const {
  return {{"chance", std::log(static_cast<double>(settings_.values))}};
}

nlohmann::json RecallDataset::describe() const {
  return {{"vocabulary", vocabulary()}, {"pairs", settings_.pairs}, {"keys", settings_.keys},
          {"values", settings_.values}, {"queries", queries_},      {"validation", settings_.validation}};
}

}  // namespace heed
