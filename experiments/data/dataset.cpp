#include "experiments/data/dataset.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/data/open.hpp"
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

std::vector<std::pair<std::string, double>> Dataset::reference_losses(Index rows, Index context) const {
  std::vector<std::pair<std::string, double>> result;
  if (!facts_.comparable) return result;
  for (auto const& [order, loss] : ngram_losses(facts_)) result.emplace_back(order + "-gram", loss);
  result.insert(result.end(), facts_.bounds.begin(), facts_.bounds.end());
  if (facts_.known_losses)
    for (auto& each : facts_.known_losses(rows, context)) result.push_back(std::move(each));
  return result;
}

template void Registry<DataKind>::add(DataKind);

std::unique_ptr<Dataset> open_dataset(Choice const& data, DataContext const& context) {
  DataKind const& kind = Registry<DataKind>::at(data.kind, "data.kind: there is no");
  if (context.held_out != "validation" && context.held_out != "test")
    throw Error("data: there is no part '" + context.held_out + "' to hold out; there are validation and test");
  if (context.held_out == "test" && kind.parts == DataParts::validation)
    throw Error("data.kind: data of kind " + data.kind + " have no test part, validation alone is held out");
  std::vector<std::string> elsewhere;
  DataContext noting = context;
  noting.elsewhere = &elsewhere;
  noting.kind = data.kind;
  auto dataset = kind.open(*data.settings, noting);
  if (!elsewhere.empty() && !context.quiet)
    fmt::print(stderr, "data are taken from where the run has read them, unchanged: {}\n", fmt::join(elsewhere, ", "));
  return dataset;
}

}  // namespace heed
