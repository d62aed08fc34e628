// Self-attention over a few tokens with every matrix on the page:
//
//   K = x W_k,  Q = x W_q,  V = x W_v,  S = Q Kᵀ,  P = softmax(S),  O = P V,
//
// with P unscaled, scaled by 1/√d_k, and causal; and for each the gradients of L = Σ O by V, S, K, Q and x. The weights stand as [in, out].

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/study/worked_example_page.hpp"

namespace heed {

namespace {

using Matrix = std::vector<std::vector<double>>;

struct WorkedExampleSettings : Settings {
  Matrix x{{1, 0, 1, 0}, {0, 2, 0, 2}, {1, 1, 1, 1}};
  Matrix key{{0, 0, 1}, {1, 1, 0}, {0, 1, 0}, {1, 1, 0}};
  Matrix query{{1, 0, 1}, {1, 0, 0}, {0, 0, 1}, {0, 1, 1}};
  Matrix value{{0, 2, 0}, {0, 3, 0}, {1, 0, 3}, {1, 1, 0}};

  std::vector<Field> fields() override {
    return {{.name = "x", .target = &x, .help = "the tokens, a row each"},
            {.name = "key", .target = &key, .help = "W_k, [width of x, d_k]"},
            {.name = "query", .target = &query, .help = "W_q, [width of x, d_k]"},
            {.name = "value", .target = &value, .help = "W_v, [width of x, d_v]"}};
  }

  std::optional<std::string> contradiction() override {
    for (auto const& [name, matrix] : {std::pair<char const*, Matrix const&>{"x", x}, {"key", key}, {"query", query}, {"value", value}}) {
      if (matrix.empty() || matrix.front().empty()) return fmt::format("{}: is empty", name);
      for (std::size_t i = 1; i < matrix.size(); ++i) {
        if (matrix[i].size() != matrix.front().size())
          return fmt::format("{}: row {} has {} numbers, row 1 has {}", name, i + 1, matrix[i].size(), matrix.front().size());
      }
      if (&matrix != &x && matrix.size() != x.front().size())
        return fmt::format("{}: has {} rows, but the rows of x have {} numbers", name, matrix.size(), x.front().size());
    }
    if (key.front().size() != query.front().size())
      return fmt::format("query: has {} columns, but key has {}", query.front().size(), key.front().size());
    return std::nullopt;
  }
};

Tensor tensor(Matrix const& matrix) {
  std::vector<double> values;
  for (auto const& row : matrix) values.insert(values.end(), row.begin(), row.end());
  return Tensor::of(values, {static_cast<std::int64_t>(matrix.size()), static_cast<std::int64_t>(matrix.front().size())});
}

std::string shown_number(double value) { return value == std::round(value) ? fmt::format("{}", value) : fmt::format("{:.6g}", value); }

/// Puts matrices on the page and into results.csv.
class Page {
 public:
  Page() { result_.csv.push_back({"variant", "matrix", "row", "column", "value"}); }

  void add(std::string const& variant, std::string const& name, std::string const& title, Tensor const& matrix) {
    StudyTable table{variant.empty() ? title : fmt::format("{}, {}", title, variant), {{""}}};
    for (std::int64_t j = 0; j < matrix.size(1); ++j) table.rows.front().push_back(std::to_string(j + 1));
    for (std::int64_t i = 0; i < matrix.size(0); ++i) {
      table.rows.push_back({std::to_string(i + 1)});
      for (std::int64_t j = 0; j < matrix.size(1); ++j) {
        double const value = matrix.at(i * matrix.size(1) + j);
        table.rows.back().push_back(shown_number(value));
        result_.csv.push_back({variant, name, std::to_string(i + 1), std::to_string(j + 1), fmt::format("{}", value)});
      }
    }
    result_.tables.push_back(std::move(table));
  }
  void say(std::string sentence) { result_.sentences.push_back(std::move(sentence)); }
  StudyResult take() { return std::move(result_); }

 private:
  StudyResult result_;
};

std::optional<StudyResult> work_example(WorkedExampleSettings const& settings, StudyContext const&) {
  WithGrad const recorded;
  Tensor x = tensor(settings.x);
  x.set_requires_grad();
  Tensor const keys = matmul(x, tensor(settings.key)), queries = matmul(x, tensor(settings.query)),
               values = matmul(x, tensor(settings.value));
  Tensor const scores = matmul(queries, keys, false, true);
  Page page;
  page.add("", "x", "x", x);
  page.add("", "W_k", "W_k", tensor(settings.key));
  page.add("", "W_q", "W_q", tensor(settings.query));
  page.add("", "W_v", "W_v", tensor(settings.value));
  page.add("", "K", "keys K = x W_k", keys);
  page.add("", "Q", "queries Q = x W_q", queries);
  page.add("", "V", "values V = x W_v", values);
  page.add("", "S", "scores S = Q Kᵀ", scores);

  struct Variant {
    std::string name, weights;
    double scale;
    bool causal;
  };
  double const root = 1 / std::sqrt(static_cast<double>(keys.size(1)));
  for (auto const& [variant, formula, factor, causal] : {Variant{"unscaled", "softmax(S)", 1, false},
                                                         {"scaled", "softmax(S/√d_k)", root, false},
                                                         {"causal", "softmax(S) over the tokens up to the row's own", 1, true}}) {
    Tensor const scaled = scale(scores, factor);
    Tensor const weights = causal ? masked_softmax(scaled, tril(Tensor::ones(scores.shape(), DType::float64))) : softmax(scaled);
    Tensor const outputs = matmul(weights, values);
    page.add(variant, "P", "weights P = " + formula, weights);
    page.add(variant, "O", "outputs O = P V", outputs);
    auto const gradients = grad({sum(outputs)}, {values, scores, keys, queries, x});
    page.add(variant, "dV", "∂ΣO/∂V", gradients[0]);
    page.add(variant, "dS", "∂ΣO/∂S", gradients[1]);
    page.add(variant, "dK", "∂ΣO/∂K", gradients[2]);
    page.add(variant, "dQ", "∂ΣO/∂Q", gradients[3]);
    page.add(variant, "dx", "∂ΣO/∂x", gradients[4]);
    std::vector<std::string> entropies;
    for (std::int64_t i = 0; i < weights.size(0); ++i) {
      double entropy = 0;
      for (std::int64_t j = 0; j < weights.size(1); ++j) {
        double const p = weights.at(i * weights.size(1) + j);
        if (p > 0) entropy -= p * std::log(p);
      }
      entropies.push_back(fmt::format("{:.4f}", entropy + 0.0));
    }
    page.say(fmt::format("{}: entropy of the rows of P {} nat (the most there could be: {:.4f})", variant, fmt::join(entropies, ", "),
                         std::log(static_cast<double>(weights.size(1)))));
  }
  return page.take();
}

Declared<StudyKind> const declared{
    study_kind("worked_example", "self-attention over a few tokens: every matrix, every gradient", work_example, worked_example_page)};

}  // namespace

}  // namespace heed
