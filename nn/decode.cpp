#include "nn/decode.hpp"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/operations.hpp"

namespace heed {

Tensor last_place(Tensor const& x) {
  std::int64_t const rows = x.size(0), places = x.size(1), width = x.size(2);
  return places == 1 ? x.viewed({rows, width}) : reshape(slice(x, 1, places - 1, places), {rows, width});
}

std::vector<Decoded> greedy(Model const& model, Batch const& given, std::int64_t begin, std::int64_t end, std::int64_t most) {
  NoGrad const quiet;
  auto const decoding = model.decode(given);
  if (!decoding) throw Error("decode: a model of this kind makes no target from a source");
  auto const rows = static_cast<std::size_t>(given.rows());
  std::vector<Decoded> result(rows);
  std::vector<std::size_t> going(rows);  // the rows without an end so far
  std::iota(going.begin(), going.end(), std::size_t{0});
  std::vector<std::int64_t> last(rows, begin);
  for (std::int64_t step = 0; step < most && !going.empty(); ++step) {
    Tensor const scores = decoding->scores(Tensor::of(last, {static_cast<std::int64_t>(last.size())}));
    Tensor const logs = log_softmax(scores.to(DType::float64), -1), best = argmax(logs, -1);
    std::vector<std::size_t> still;
    std::vector<std::int64_t> kept, next;
    for (std::size_t i = 0; i < going.size(); ++i) {
      auto const row = static_cast<std::int64_t>(i), token = best.data<std::int64_t>()[i];
      double const score = logs.at(row * logs.size(1) + token);
      if (!std::isfinite(score)) throw NonFinite(fmt::format("decode: of row {}, the most probable token's score is {}", going[i], score));
      result[going[i]].score += score;
      if (token == end) continue;
      result[going[i]].tokens.push_back(token);
      still.push_back(going[i]);
      kept.push_back(row);
      next.push_back(token);
    }
    if (kept.size() < going.size() && !kept.empty()) decoding->keep(kept);
    going = std::move(still);
    last = std::move(next);
  }
  return result;
}

}  // namespace heed
