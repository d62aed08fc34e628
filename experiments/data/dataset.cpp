#include "experiments/data/dataset.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/tokenizer.hpp"

namespace heed {
namespace {

/// By order, "1" …
std::vector<std::pair<std::string, double>> ngram_losses(DataFacts const& facts) {
  std::vector<std::pair<std::string, double>> all;
  if (facts.ngrams.valid())
    for (double const loss : facts.ngrams.get()) all.emplace_back(std::to_string(all.size() + 1), loss);
  return all;
}

}  // namespace

RowRange rows_of_batch(std::string const& split, Index index, Index batch, Index rows) {
  Index const first = index * batch, count = std::min(batch, rows - first);
  if (index < 0 || count <= 0)
    throw Error(fmt::format("{} batch {} of {} does not exist", split, index, (std::max<Index>(rows, 0) + batch - 1) / batch));
  return {first, count};
}

std::string Dataset::tokenizer() const { return facts_.tokenizer ? facts_.tokenizer->json() : ""; }
std::string Dataset::source_tokenizer() const { return facts_.source_tokenizer ? facts_.source_tokenizer->json() : ""; }

nlohmann::json Dataset::describe() const {
  auto result = facts_.description;
  for (auto const& [order, loss] : ngram_losses(facts_)) result["ngram"][order] = loss;
  return result;
}

std::vector<std::pair<std::string, double>> Dataset::reference_losses() const {
  std::vector<std::pair<std::string, double>> result;
  if (!facts_.comparable) return result;
  for (auto const& [order, loss] : ngram_losses(facts_)) result.emplace_back(order + "-gram", loss);
  result.insert(result.end(), facts_.bounds.begin(), facts_.bounds.end());
  return result;
}

}  // namespace heed
