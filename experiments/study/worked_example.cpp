// Self-attention over a few tokens with every matrix on the page:
//
//   K = x W_k,  Q = x W_q,  V = x W_v,  S = Q Kᵀ,  P = softmax(S),  O = P V,
//
// with P unscaled, scaled by 1/√d_k, and causal; and for each the gradients of L = Σ O by V, S, K, Q and x. The weights stand as [in, out].

#include <algorithm>
#include <cmath>
#include <map>

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
#include "nn/files/number.hpp"

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

std::string shown_number(double value) { return value == std::round(value) ? fmt::format("{}", value) : fmt::format("{:.6g}", value); }

/// Puts matrices on the page and into results.csv.
class Page {
 public:
  Page() { result_.csv.push_back({"variant", "matrix", "row", "column", "value"}); }

  void add(std::string const& variant, std::string const& name, std::string const& title, Tensor const& matrix) {
    StudyTable table{variant.empty() ? title : fmt::format("{}, {}", title, variant), {{""}}};
    for (Index j = 0; j < matrix.size(1); ++j) table.rows.front().push_back(std::to_string(j + 1));
    for (Index i = 0; i < matrix.size(0); ++i) {
      table.rows.push_back({std::to_string(i + 1)});
      for (Index j = 0; j < matrix.size(1); ++j) {
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

StudyResult work_example(WorkedExampleSettings const& settings) {
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
    for (Index i = 0; i < weights.size(0); ++i) {
      double entropy = 0;
      for (Index j = 0; j < weights.size(1); ++j) {
        double const p = weights.at(i * weights.size(1) + j);
        if (p > 0) entropy -= p * std::log(p);
      }
      entropies.push_back(fmt::format("{:.4f}", entropy + 0.0));
    }
    page.say(fmt::format("{}: entropy of the rows of P {} nat (largest possible: {:.4f})", variant, fmt::join(entropies, ", "),
                         std::log(static_cast<double>(weights.size(1)))));
  }
  return page.take();
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

/// The matrices of results.csv, by variant and name.
class Matrices {
 public:
  explicit Matrices(StudyRecord const& record) : path_(record.folder / "results.csv") {
    for (std::size_t i = 1; i < record.csv.size(); ++i) {
      auto const& line = record.csv[i];
      double value = 0;
      std::size_t row = 0, column = 0;
      if (line.size() != 5 || !read(line[2], row) || !read(line[3], column) || !read(line[4], value))
        throw FileError(fmt::format("{}: line {} is no entry of a matrix", path_.string(), i + 1));
      auto& matrix = all_[{line[0], line[1]}];
      if (column == 1) matrix.emplace_back();
      if (row != matrix.size() || column != matrix.back().size() + 1)
        throw FileError(fmt::format("{}: line {}: row {}, column {} is not in its order", path_.string(), i + 1, row, column));
      matrix.back().push_back(value);
    }
  }

  RealMatrix const& at(std::string const& variant, std::string const& name) const {
    auto const found = all_.find({variant, name});
    if (found == all_.end()) throw FileError(fmt::format("{}: the matrix {} is missing", path_.string(), name));
    return found->second;
  }

 private:
  template <class Number>
  static bool read(std::string const& text, Number& number) {
    auto const found = parsed_number<Number>(text);
    number = found.value_or(number);
    return found.has_value();
  }

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
  auto const& p = weights.back();
  double const largest = *std::ranges::max_element(row);
  double sum = 0;
  std::vector<std::string> powers;
  for (double const s : row) {
    double const power = std::exp(scale * (s - largest));
    sum += power;
    powers.push_back(shown(power));
  }
  return fmt::format(
      "Softmax of each row. Row {}: after subtracting its largest score, {}{}, the exponentials are {}; divided by their sum {} they are "
      "the weights {}.",
      row.size() == 0 ? 0 : scores.size(), shown(largest), scale == 1 ? "" : fmt::format(", and times {:.4f}", scale),
      fmt::join(powers, ", "), shown(sum), [&] {
        std::vector<std::string> all;
        for (double const each : p) all.push_back(shown(each));
        return fmt::format("{}", fmt::join(all, ", "));
      }());
}

/// From weights to outputs and back to the tokens.
StudyPart variant_part(Matrices const& m, std::string const& variant, std::string const& title, double scale) {
  auto const& weights = m.at(variant, "P");
  auto const &values = m.at("", "V"), &scores = m.at("", "S");
  std::string html = step_html(html_of("S", scores) + sign("→") + html_of("P", weights),
                               softmax_text(scores, weights, scale) +
                                   (variant == "causal" ? " A row sees the tokens up to its own: later ones have weight 0." : ""));
  html += product("P", weights, "V", values, "O", m.at(variant, "O"), "Outputs O = P V, a mean of the values by weight");

  html += "<h3>Back: gradients of L = ΣO</h3>\n";
  RealMatrix const ones(weights.size(), std::vector<double>(values.front().size(), 1.0)), by_weight = [&] {
    RealMatrix rows(weights.size());
    for (auto& row : rows)
      for (auto const& value : values) {
        double sum = 0;
        for (double const each : value) sum += each;
        row.push_back(sum);
      }
    return rows;
  }();
  auto const& by_score = m.at(variant, "dS");
  html += product("Pᵀ", transposed(weights), "∂L/∂O", ones, "∂L/∂V", m.at(variant, "dV"), "∂L/∂V = Pᵀ ∂L/∂O, and ∂L/∂O is 1 everywhere");
  double mean = 0;
  for (std::size_t j = 0; j < weights.size(); ++j) mean += weights.back()[j] * by_weight.back()[j];
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
  return {title, html, {}};
}

/// The worked example step by step: each product with its factors in colours, and one entry of it spelled out. Throws FileError for a
/// results.csv that lacks a matrix.
std::vector<StudyPart> worked_example_page(StudyRecord const& record) {
  Matrices const m(record);
  auto const &x = m.at("", "x"), &keys = m.at("", "K"), &queries = m.at("", "Q");
  std::string projections;
  for (auto const& [name, weight, words] :
       {std::tuple{"K", "W_k", "Keys K = x W_k"}, {"Q", "W_q", "Queries Q = x W_q"}, {"V", "W_v", "Values V = x W_v"}})
    projections += product("x", x, weight, m.at("", weight), name, m.at("", name), words);
  double const scale = 1 / std::sqrt(static_cast<double>(keys.front().size()));
  return {
      {"Tokens to keys, queries and values", projections, {}},
      {"Scores", product("Q", queries, "Kᵀ", transposed(keys), "S", m.at("", "S"), "Scores S = Q Kᵀ, a row a query, a column a key"), {}},
      variant_part(m, "unscaled", "Unscaled: P = softmax(S)", 1),
      variant_part(m, "scaled", "Scaled: P = softmax(S/√d_k)", scale),
      variant_part(m, "causal", "Causal: P = softmax(S) over the tokens up to the row's own", 1)};
}

Declared<StudyKind> const worked_example_study{
    study_kind("worked_example", "self-attention over a few tokens: every matrix, every gradient", worked_example, worked_example_page)};

}  // namespace

}  // namespace heed
