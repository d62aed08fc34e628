// Einstein's sum, as a composition: letters that only one operand has are summed, the rest is one batched product
// [batch, rows, inner] · [batch, inner, columns], with axes moved only where the product's transposition flags cannot do it.

#include <algorithm>

#include <fmt/format.h>

#include "autograd/check.hpp"
#include "autograd/error.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

namespace {

/// A tensor and the letter of each of its axes.
struct Lettered {
  Tensor x;
  std::string letters;

  std::int64_t size(char letter) const { return x.size(static_cast<std::int64_t>(letters.find(letter))); }
};

bool has(std::string const& letters, char letter) { return letters.find(letter) != std::string::npos; }

template <class Wanted>
std::string letters_where(std::string const& letters, Wanted const& wanted) {
  std::string chosen;
  std::ranges::copy_if(letters, std::back_inserter(chosen), wanted);
  return chosen;
}

struct Formula {
  std::vector<std::string> operands;
  std::string output;
};

Formula parsed(std::string const& text) {
  auto const fail = [&](std::string const& why) { throw Error(fmt::format("einsum: '{}': {}", text, why)); };
  std::size_t const arrow = text.find("->");
  if (arrow == std::string::npos) fail("no '->'");
  Formula formula{{""}, text.substr(arrow + 2)};
  for (char const letter : text.substr(0, arrow)) {
    if (letter == ',') {
      formula.operands.emplace_back();
    } else {
      formula.operands.back().push_back(letter);
    }
  }
  std::string known;
  auto const check = [&](std::string const& letters) {
    for (std::size_t i = 0; i < letters.size(); ++i) {
      bool const letter = (letters[i] >= 'a' && letters[i] <= 'z') || (letters[i] >= 'A' && letters[i] <= 'Z');
      if (!letter) fail(fmt::format("'{}' is not a letter", letters[i]));
      if (letters.find(letters[i], i + 1) != std::string::npos) fail(fmt::format("'{}' is there twice in '{}'", letters[i], letters));
    }
  };
  for (std::string const& operand : formula.operands) {
    check(operand);
    known += operand;
  }
  check(formula.output);
  for (char const letter : formula.output) {
    if (!has(known, letter)) fail(fmt::format("the output's '{}' is in no operand", letter));
  }
  return formula;
}

/// Sums the letters that are not in `needed`.
Lettered summed(Lettered const& a, std::string const& needed) {
  Axes axes;
  for (std::size_t i = 0; i < a.letters.size(); ++i) {
    if (!has(needed, a.letters[i])) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (axes.empty()) return a;
  return {sum(a.x, axes), letters_where(a.letters, [&](char letter) { return has(needed, letter); })};
}

Tensor ordered(Lettered const& a, std::string const& letters) {
  if (letters == a.letters) return a.x;
  std::vector<std::int64_t> axes;
  for (char const letter : letters) axes.push_back(static_cast<std::int64_t>(a.letters.find(letter)));
  return permute(a.x, axes);
}

std::vector<std::int64_t> extents_of(std::string const& letters, Lettered const& a, Lettered const& b) {
  std::vector<std::int64_t> extents;
  for (char const letter : letters) extents.push_back(has(a.letters, letter) ? a.size(letter) : b.size(letter));
  return extents;
}

std::int64_t product(std::vector<std::int64_t> const& extents) {
  std::int64_t result = 1;
  for (std::int64_t const extent : extents) result *= extent;
  return result;
}

/// Two operands, whose letters are all shared or in the output.
Tensor contracted(Lettered const& a, Lettered const& b, std::string const& output) {
  std::string const batch = letters_where(output, [&](char c) { return has(a.letters, c) && has(b.letters, c); });
  std::string const rows = letters_where(output, [&](char c) { return !has(b.letters, c); });
  std::string const columns = letters_where(output, [&](char c) { return !has(a.letters, c); });
  if (!rows.empty() && !columns.empty() && output.find(columns.front()) < output.find(rows.front())) return contracted(b, a, output);
  std::string const inner = letters_where(a.letters, [&](char c) { return !has(output, c); });

  // Nothing to sum: a product that broadcasts. Nothing but the sum: one pass over the product.
  std::int64_t const n_batch = product(extents_of(batch, a, b));
  std::int64_t const n_rows = product(extents_of(rows, a, b));
  std::int64_t const n_columns = product(extents_of(columns, a, b));
  std::int64_t const n_inner = product(extents_of(inner, a, b));
  Tensor y;
  if (inner.empty()) {
    y = reshape(ordered(a, batch + rows), {n_batch, n_rows, 1}) * reshape(ordered(b, batch + columns), {n_batch, 1, n_columns});
  } else if (rows.empty() && columns.empty()) {
    y = sum(reshape(ordered(a, batch + inner) * ordered(b, batch + inner), {n_batch, n_inner}), {1});
  } else {
    bool const transpose_a = a.letters == batch + inner + rows && !rows.empty();
    bool const transpose_b = b.letters == batch + columns + inner && !columns.empty();
    Tensor const left =
        transpose_a ? reshape(a.x, {n_batch, n_inner, n_rows}) : reshape(ordered(a, batch + rows + inner), {n_batch, n_rows, n_inner});
    Tensor const right = transpose_b ? reshape(b.x, {n_batch, n_columns, n_inner})
                                     : reshape(ordered(b, batch + inner + columns), {n_batch, n_inner, n_columns});
    y = matmul(left, right, transpose_a, transpose_b);
  }
  std::string const order = batch + rows + columns;
  return ordered({reshape(y, extents_of(order, a, b)), order}, output);
}

}  // namespace

Tensor einsum(std::string const& formula, std::vector<Tensor> const& operands) {
  auto const [letters, output] = parsed(formula);
  if (operands.size() != letters.size()) {
    throw Error(fmt::format("einsum: '{}' has {} operands; {} given", formula, letters.size(), operands.size()));
  }
  if (operands.size() > 2) throw Error(fmt::format("einsum: '{}': one or two operands, not {}", formula, operands.size()));
  std::vector<Lettered> given;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].rank() != letters[i].size()) {
      throw Error(
          fmt::format("einsum: '{}': '{}' names {} axes of {}", formula, letters[i], letters[i].size(), to_string(operands[i].shape())));
    }
    given.push_back({operands[i], letters[i]});
  }
  if (given.size() == 1) return ordered(summed(given[0], output), output);
  for (char const letter : letters[0]) {
    if (has(letters[1], letter) && given[0].size(letter) != given[1].size(letter)) {
      throw Error(fmt::format("einsum: '{}': the extents of '{}' differ: {} and {}", formula, letter, given[0].size(letter),
                              given[1].size(letter)));
    }
  }
  return contracted(summed(given[0], output + letters[1]), summed(given[1], output + letters[0]), output);
}

namespace {

/// A formula and the same by broadcasting: every letter an axis, multiplied, then summed.
Sample einsum_sample(char const* formula, std::vector<Shape> const& shapes) {
  auto const reference = [formula](std::vector<Tensor> const& x) {
    Formula const whole = parsed(formula);
    auto const& letters = whole.operands;  // clang 14 captures no structured bindings
    std::string all = whole.output;
    for (std::string const& operand : letters) all += letters_where(operand, [&](char c) { return !has(all, c); });
    Tensor y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      Tensor aligned = ordered({x[i], letters[i]}, letters_where(all, [&](char c) { return has(letters[i], c); }));
      for (std::size_t axis = 0; axis < all.size(); ++axis) {
        if (!has(letters[i], all[axis])) aligned = unsqueeze(aligned, static_cast<std::int64_t>(axis));
      }
      y = y.defined() ? y * aligned : aligned;
    }
    Axes axes;
    for (std::size_t axis = whole.output.size(); axis < all.size(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
    return axes.empty() ? y : sum(y, axes);
  };
  std::vector<SampleInput> inputs;
  for (Shape const& shape : shapes) inputs.push_back({shape});
  return {inputs, [formula](std::vector<Tensor> const& x) { return einsum(formula, x); }, reference};
}

ErrorCase einsum_error(char const* formula, std::vector<Shape> const& shapes, char const* message) {
  return {[formula, shapes] {
            std::vector<Tensor> operands;
            for (Shape const& shape : shapes) operands.push_back(Tensor::zeros(shape, DType::float64));
            einsum(formula, operands);
          },
          message};
}

}  // namespace

static Declared<OperationCheck> const einsum_check{
    {"einsum",
     "Σ over the letters that the output lacks of the operands' product",
     {einsum_sample("bhnd,bhmd->bhnm", {{2, 2, 3, 4}, {2, 2, 5, 4}}), einsum_sample("bhnm,bhmd->bhnd", {{2, 2, 3, 5}, {2, 2, 5, 4}}),
      einsum_sample("bnhd,bmhd->bhmn", {{2, 3, 2, 4}, {2, 5, 2, 4}}), einsum_sample("hde,bhnd->bhne", {{2, 3, 4}, {2, 2, 5, 3}}),
      einsum_sample("ij,jk->ki", {{2, 3}, {3, 4}}), einsum_sample("ji,jk->ik", {{3, 2}, {3, 4}}),
      einsum_sample("ij,ij->", {{2, 3}, {2, 3}}), einsum_sample("i,j->ij", {{2}, {3}}),
      einsum_sample("bij,bij->bi", {{2, 3, 4}, {2, 3, 4}}), einsum_sample("bij,jb->ij", {{2, 3, 4}, {4, 2}}),
      einsum_sample("aib,cjb->ij", {{2, 3, 4}, {2, 5, 4}}), einsum_sample("bhn,bhn->bhn", {{1, 2, 3}, {1, 2, 3}}),
      einsum_sample("hd,bhnd->bhn", {{2, 3}, {2, 2, 4, 3}}), einsum_sample("ijk->ki", {{2, 3, 4}}), einsum_sample("ij->", {{2, 3}}),
      einsum_sample("ij->ji", {{2, 3}}), einsum_sample(",i->i", {{}, {3}}), einsum_sample("ij,jk->ik", {{0, 3}, {3, 2}}),
      einsum_sample("ij,jk->ik", {{2, 0}, {0, 2}})},
     {einsum_error("ij,jk", {{2, 3}, {3, 4}}, "einsum: 'ij,jk': no '->'"),
      einsum_error("i2->i", {{2, 3}}, "einsum: 'i2->i': '2' is not a letter"),
      einsum_error("ii->i", {{2, 2}}, "einsum: 'ii->i': 'i' is there twice in 'ii'"),
      einsum_error("ij->ijk", {{2, 2}}, "einsum: 'ij->ijk': the output's 'k' is in no operand"),
      einsum_error("ij,jk->ik", {{2, 3}}, "einsum: 'ij,jk->ik' has 2 operands; 1 given"),
      einsum_error("i,i,i->i", {{2}, {2}, {2}}, "einsum: 'i,i,i->i': one or two operands, not 3"),
      einsum_error("ij,jk->ik", {{2, 3}, {4, 5}}, "einsum: 'ij,jk->ik': the extents of 'j' differ: 3 and 4"),
      einsum_error("ij->i", {{2}}, "einsum: 'ij->i': 'ij' names 2 axes of [2]")}}};

}  // namespace heed
