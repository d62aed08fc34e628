// Self-attention over a few tokens with every matrix on the page:
//
//   K = x W_k,  Q = x W_q,  V = x W_v,  S = Q Kᵀ,  P = softmax(S),  O = P V,
//
// with P unscaled, scaled by 1/√d_k, and causal; and for each the gradients of L = Σ O by V, S, K, Q and x. The weights stand as [in, out].

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/report/html.hpp"
#include "experiments/study/study.hpp"

namespace heed {

namespace {

using RealMatrix = std::vector<std::vector<double>>;

struct WorkedExampleSettings : Settings {
  RealMatrix x{{1, 0, 1, 0}, {0, 2, 0, 2}, {1, 1, 1, 1}};
  RealMatrix key{{0, 0, 1}, {1, 1, 0}, {0, 1, 0}, {1, 1, 0}};
  RealMatrix query{{1, 0, 1}, {1, 0, 0}, {0, 0, 1}, {0, 1, 1}};
  RealMatrix value{{0, 2, 0}, {0, 3, 0}, {1, 0, 3}, {1, 1, 0}};

  std::vector<Field> fields() override {
    return {field(&x, "x", "the tokens, one row each"), field(&key, "key", "W_k, [width of x, d_k]"),
            field(&query, "query", "W_q, [width of x, d_k]"), field(&value, "value", "W_v, [width of x, d_v]")};
  }

  std::optional<std::string> contradiction() override {
    for (auto const& [name, matrix] :
         {std::pair<char const*, RealMatrix const&>{"x", x}, {"key", key}, {"query", query}, {"value", value}}) {
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

Tensor tensor(RealMatrix const& matrix) {
  std::vector<double> values;
  for (auto const& row : matrix) values.insert(values.end(), row.begin(), row.end());
  return Tensor::of(values, {static_cast<Index>(matrix.size()), static_cast<Index>(matrix.front().size())});
}

/// How the weights are computed, by name.
std::vector<std::pair<std::string, std::string>> const variants{
    {"unscaled", "softmax(S)"}, {"scaled", "softmax(S/√d_k)"}, {"causal", "softmax(S) over the tokens up to the row's own"}};

double factor_of(std::string const& variant, Index d_k) { return variant == "scaled" ? 1 / std::sqrt(to_double(d_k)) : 1; }

/// Adds a matrix to the tables and to results.csv.
void add(StudyResult& result, std::string const& variant, std::string const& name, std::string const& title, Tensor const& matrix) {
  StudyTable table{variant.empty() ? title : fmt::format("{}, {}", title, variant), {{""}}};
  for (Index j = 0; j < matrix.size(1); ++j) table.rows.front().push_back(std::to_string(j + 1));
  for (Index i = 0; i < matrix.size(0); ++i) {
    table.rows.push_back({std::to_string(i + 1)});
    for (Index j = 0; j < matrix.size(1); ++j) {
      double const value = matrix.at(i * matrix.size(1) + j);
      table.rows.back().push_back(value == std::round(value) ? fmt::format("{}", value) : fmt::format("{:.6g}", value));
      result.csv.push_back({variant, name, std::to_string(i + 1), std::to_string(j + 1), fmt::format("{}", value)});
    }
  }
  result.tables.push_back(std::move(table));
}

StudyResult work_example(WorkedExampleSettings const& settings) {
  WithGrad const recorded;
  Tensor x = tensor(settings.x);
  x.set_requires_grad();
  Tensor const keys = matmul(x, tensor(settings.key)), queries = matmul(x, tensor(settings.query)),
               values = matmul(x, tensor(settings.value));
  Tensor const scores = matmul(queries, keys, false, true);
  StudyResult result{.csv = {{"variant", "matrix", "row", "column", "value"}}, .tables = {}, .sentences = {}, .figures = {}};
  for (auto const& [name, title, matrix] : {std::tuple{"x", "x", x},
                                            {"W_k", "W_k", tensor(settings.key)},
                                            {"W_q", "W_q", tensor(settings.query)},
                                            {"W_v", "W_v", tensor(settings.value)},
                                            {"K", "keys K = x W_k", keys},
                                            {"Q", "queries Q = x W_q", queries},
                                            {"V", "values V = x W_v", values},
                                            {"S", "scores S = Q Kᵀ", scores}})
    add(result, "", name, title, matrix);
  for (auto const& [variant, formula] : variants) {
    bool const causal = variant == "causal";
    Tensor const scaled = scale(scores, factor_of(variant, keys.size(1)));
    Tensor const weights = causal ? masked_softmax(scaled, tril(Tensor::ones(scores.shape(), DType::float64))) : softmax(scaled);
    Tensor const outputs = matmul(weights, values);
    add(result, variant, "P", "weights P = " + formula, weights);
    add(result, variant, "O", "outputs O = P V", outputs);
    auto const gradients = grad({sum(outputs)}, {values, scores, keys, queries, x});
    std::string const inputs[] = {"V", "S", "K", "Q", "x"};
    for (std::size_t i = 0; i < gradients.size(); ++i) add(result, variant, "d" + inputs[i], "∂ΣO/∂" + inputs[i], gradients[i]);
    std::vector<std::string> entropies;
    for (Index i = 0; i < weights.size(0); ++i) {
      double entropy = 0;
      for (Index j = 0; j < weights.size(1); ++j) {
        double const p = weights.at(i * weights.size(1) + j);
        if (p > 0) entropy -= p * std::log(p);
      }
      entropies.push_back(fmt::format("{:.4f}", entropy + 0.0));
    }
    result.sentences.push_back(fmt::format("{}: entropy of the rows of P {} nat (largest possible: {:.4f})", variant,
                                           fmt::join(entropies, ", "), std::log(to_double(weights.size(1)))));
  }
  return result;
}

/// Takes no time: it has no cells.
Study worked_example(WorkedExampleSettings const& settings, StudyContext const&) {
  return {.cells = {}, .report = [&settings](CsvRows const&) { return work_example(settings); }};
}

// ---------------------------------------------------------------- its page

std::string shown(double value) {
  return value == std::round(value) ? fmt::format("{:.0f}", value + 0.0)
         : std::abs(value) < 1e-3   ? fmt::format("{:.2g}", value)
                                    : fmt::format("{:.4f}", value);
}

/// A number inside of a sum: in parentheses if it is negative.
std::string factor(double value) { return value < 0 ? "(" + shown(value) + ")" : shown(value); }

/// The matrices of results.csv, by variant and name. Throws FileError for a file that lacks an entry or a matrix.
class Matrices {
 public:
  explicit Matrices(StudyRecord const& record) : path_(record.folder / "results.csv") {
    for (auto const& line : csv_lines(record.csv, path_)) {
      auto const row = line.number<std::size_t>("row"), column = line.number<std::size_t>("column");
      auto& matrix = all_[{line["variant"], line["matrix"]}];
      if (column == 1) matrix.emplace_back();
      if (matrix.empty() || row != matrix.size() || column != matrix.back().size() + 1)
        throw FileError(fmt::format("{}: row {}, column {} is not in its order", line.location(), row, column));
      matrix.back().push_back(line.number("value"));
    }
  }

  RealMatrix const& at(std::string const& variant, std::string const& name) const {
    auto const found = all_.find({variant, name});
    if (found == all_.end()) throw FileError(fmt::format("{}: the matrix {} is missing", path_.string(), name));
    return found->second;
  }

 private:
  std::filesystem::path path_;
  std::map<std::pair<std::string, std::string>, RealMatrix> all_;
};

/// A matrix with its name above; the larger a number the deeper its colour, blue above 0 and orange below.
std::string html_of(std::string const& name, RealMatrix const& matrix) {
  double most = 1e-300;
  for (auto const& row : matrix)
    for (double const value : row) most = std::max(most, std::abs(value));
  std::string html = fmt::format("<table class=\"matrix\"><caption>{}</caption><tbody>\n", escape(name));
  for (auto const& row : matrix) {
    html += "<tr>";
    for (double const value : row)
      html += fmt::format("<td style=\"background:rgba({},{:.2f})\">{}</td>", value < 0 ? "213,94,0" : "0,114,178",
                          0.45 * std::abs(value) / most, shown(value));
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string sign(char const* text) { return fmt::format("<span class=\"sign\">{}</span>\n", text); }

std::string step_html(std::string const& matrices, std::string const& words) {
  return fmt::format("<div class=\"matrices\">\n{}</div>\n<p class=\"note\">{}</p>\n", matrices, escape(words));
}

RealMatrix transposed(RealMatrix const& matrix) {
  RealMatrix result(matrix.front().size(), std::vector<double>(matrix.size()));
  for (std::size_t i = 0; i < matrix.size(); ++i)
    for (std::size_t j = 0; j < matrix[i].size(); ++j) result[j][i] = matrix[i][j];
  return result;
}

/// "row 1 of Q times column 2 of Kᵀ: 1·4 + 0·4 + 2·0 = 4", the last entry of the first row.
std::string entry_text(std::string const& what, RealMatrix const& a, RealMatrix const& b, RealMatrix const& product) {
  std::size_t const column = product.front().size() - 1;
  std::vector<std::string> terms;
  for (std::size_t c = 0; c < b.size(); ++c) terms.push_back(factor(a[0][c]) + "·" + factor(b[c][column]));
  return fmt::format("{}: its entry in row 1, column {} is {} = {}.", what, column + 1, fmt::join(terms, " + "), shown(product[0][column]));
}

std::string product(std::string const& left, RealMatrix const& a, std::string const& right, RealMatrix const& b, std::string const& name,
                    RealMatrix const& c, std::string const& what) {
  return step_html(html_of(left, a) + sign("·") + html_of(right, b) + sign("=") + html_of(name, c), entry_text(what, a, b, c));
}

/// A sentence on the softmax of the last row.
std::string softmax_text(RealMatrix const& scores, RealMatrix const& weights, double scale) {
  auto const& row = scores.back();
  double const largest = *std::ranges::max_element(row);
  auto const powers = mapped(row, [&](double s) { return std::exp(scale * (s - largest)); });
  auto const list = [](std::vector<double> const& values) { return fmt::format("{}", fmt::join(mapped(values, shown), ", ")); };
  return fmt::format(
      "Softmax of each row. Row {}: after subtracting its largest score, {}{}, the exponentials are {}; divided by their sum {} they are "
      "the weights {}.",
      scores.size(), shown(largest), scale == 1 ? "" : fmt::format(", and times {:.4f}", scale), list(powers),
      shown(std::accumulate(powers.begin(), powers.end(), 0.0)), list(weights.back()));
}

/// From weights to outputs and back to the tokens.
StudyPart variant_part(Matrices const& m, std::string const& variant, std::string const& formula) {
  auto const &weights = m.at(variant, "P"), &values = m.at("", "V"), &scores = m.at("", "S");
  double const scale = factor_of(variant, std::ssize(m.at("", "K").front()));
  std::string html = step_html(html_of("S", scores) + sign("→") + html_of("P", weights),
                               softmax_text(scores, weights, scale) +
                                   (variant == "causal" ? " A row sees the tokens up to its own: later ones have weight 0." : ""));
  html += product("P", weights, "V", values, "O", m.at(variant, "O"), "Outputs O = P V, a mean of the values by weight");

  html += "<h3>Back: gradients of L = ΣO</h3>\n";
  auto const sums = mapped(values, [](auto const& value) { return std::accumulate(value.begin(), value.end(), 0.0); });
  RealMatrix const ones(weights.size(), std::vector<double>(values.front().size(), 1.0)), by_weight(weights.size(), sums);
  auto const& by_score = m.at(variant, "dS");
  html += product("Pᵀ", transposed(weights), "∂L/∂O", ones, "∂L/∂V", m.at(variant, "dV"), "∂L/∂V = Pᵀ ∂L/∂O, and ∂L/∂O is 1 everywhere");
  double const mean = std::inner_product(sums.begin(), sums.end(), weights.back().begin(), 0.0);
  html += step_html(
      html_of("∂L/∂P", by_weight) + sign("→") + html_of("∂L/∂S", by_score),
      fmt::format(
          "∂L/∂P = ∂L/∂O Vᵀ: the sums of the rows of V. Through softmax: ∂L/∂s_j = {}p_j (∂L/∂p_j − Σ_k p_k ∂L/∂p_k). In the last row "
          "the mean Σ_k p_k ∂L/∂p_k is {}, so that the first entry is {}{}·({} − {}) = {}. The rows add up to 0; where a weight "
          "is nearly 1, nothing is left.",
          scale == 1 ? "" : fmt::format("{:.4f} ", scale), shown(mean), scale == 1 ? "" : fmt::format("{:.4f}·", scale),
          shown(weights.back()[0]), shown(by_weight.back()[0]), shown(mean), shown(by_score.back()[0])));
  html += product("∂L/∂S", by_score, "K", m.at("", "K"), "∂L/∂Q", m.at(variant, "dQ"), "∂L/∂Q = ∂L/∂S K");
  html += product("∂L/∂Sᵀ", transposed(by_score), "Q", m.at("", "Q"), "∂L/∂K", m.at(variant, "dK"), "∂L/∂K = ∂L/∂Sᵀ Q");
  html += step_html(html_of("∂L/∂x", m.at(variant, "dx")),
                    "∂L/∂x = ∂L/∂Q W_qᵀ + ∂L/∂K W_kᵀ + ∂L/∂V W_vᵀ: a token contributes through Q, K and V.");
  std::string title = variant + ": P = " + formula;
  title.front() = static_cast<char>(std::toupper(title.front()));
  return {title, html, {}};
}

/// The worked example step by step: each product with its factors in colours, and one entry of it spelled out. Throws FileError for a
/// results.csv that lacks a matrix.
std::vector<StudyPart> worked_example_page(StudyRecord const& record) {
  Matrices const m(record);
  std::string projections;
  for (auto const& [name, weight, words] :
       {std::tuple{"K", "W_k", "Keys K = x W_k"}, {"Q", "W_q", "Queries Q = x W_q"}, {"V", "W_v", "Values V = x W_v"}})
    projections += product("x", m.at("", "x"), weight, m.at("", weight), name, m.at("", name), words);
  std::vector<StudyPart> parts{
      {"Tokens to keys, queries and values", projections, {}},
      {"Scores",
       product("Q", m.at("", "Q"), "Kᵀ", transposed(m.at("", "K")), "S", m.at("", "S"), "Scores S = Q Kᵀ, a row a query, a column a key"),
       {}}};
  for (auto const& [variant, formula] : variants) parts.push_back(variant_part(m, variant, formula));
  return parts;
}

Declared<StudyKind> const worked_example_study{
    study_kind("worked_example", "self-attention over a few tokens: every matrix, every gradient", worked_example, worked_example_page)};

}  // namespace

}  // namespace heed
