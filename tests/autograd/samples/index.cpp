// Operations with indices.

#include "tests/autograd/samples/operation_check.hpp"

namespace heed::test {

namespace {

using Indices = std::vector<Index>;

Tensor const some_indices = integers({2, 0, 1, 1}, {2, 2});

/// scatter_add() of its last argument.
Tensor scattered(Tensor const& source, Shape const& shape, Tensor const& index) { return scatter_add(shape, 1, index, source); }

DeclaredChecks const index_checks{{
    {"gather",
     {one({3, 4}, gather, 1, integers({0, 0, 3, 2, 1, 2}, {3, 2})), one({2, 3, 2}, gather, -2, integers({2, 0, 1, 1}, {2, 1, 2})),
      one({3, 4}, gather, 1, integers({}, {3, 0}))},
     {fails("gather: index 3 at [1, 0] is outside [0, 3)", gather, zeros({2, 3}), 1, integers({0, 3}, {2, 1})),
      fails("gather: shapes differ beside axis 1: [2, 3] and index [3, 1]", gather, zeros({2, 3}), 1, zeros({3, 1}, DType::int64)),
      fails("gather: indices are int64, not float32 [2, 1]", gather, zeros({2, 3}), 1, zeros({2, 1}, DType::float32)),
      fails("gather: axis 2 is out of range for the shape [2, 3]", gather, zeros({2, 3}), 2, zeros({2, 1}, DType::int64))}},
    {"scatter_add",
     {one({3, 2}, scattered, Shape{3, 4}, integers({0, 0, 3, 2, 1, 2}, {3, 2})),
      one({2, 3, 2}, scattered, Shape{2, 2, 2}, integers({1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0}, {2, 3, 2})),
      one({3, 0}, scattered, Shape{3, 4}, integers({}, {3, 0}))},
     {fails("scatter_add: index -1 at [1, 0] is outside [0, 3)", scattered, zeros({2, 1}), Shape{2, 3}, integers({0, -1}, {2, 1})),
      fails("scatter_add: the source is [2, 2], the index [2, 1]", scattered, zeros({2, 2}), Shape{2, 3}, zeros({2, 1}, DType::int64)),
      fails("scatter_add: shapes differ beside axis 1: [2, 3] and index [2]", scattered, zeros({2}), Shape{2, 3},
            zeros({2}, DType::int64))}},
    {"embedding",
     {one({5, 3}, embedding, integers({4, 0, 0, 1, 4, 4}, {2, 3})), one({5, 1}, embedding, integers({2}, {})),
      one({5, 3}, embedding, integers({}, {2, 0}))},
     {fails("embedding: index 5 at [1, 0] is outside [0, 5)", embedding, zeros({5, 3}), integers({0, 4, 5, 7}, {2, 2})),
      fails("embedding: the weight is a matrix, not [5]", embedding, zeros({5}), zeros({1}, DType::int64)),
      fails("embedding: indices are int64, not float32 [1]", embedding, zeros({5, 3}), zeros({1}, DType::float32))}},
    {"embedding_transposed",
     {one({2, 3, 2}, embedding_transposed, integers({3, 0, 0, 1, 3, 3}, {2, 3}), 4),
      one({0, 2}, embedding_transposed, integers({}, {0}), 4)},
     {fails("embedding_transposed: [2, 3] is not one row for each token of [3]", embedding_transposed, zeros({2, 3}),
            zeros({3}, DType::int64), 4),
      fails("embedding_transposed: index 4 at [0] is outside [0, 4)", embedding_transposed, zeros({1, 3}), integers({4}, {1}), 4)}},
    {"take",
     {one({4, 2, 3}, take, Indices{3, 0, 3}), one({2}, take, Indices{1}), one({2, 3}, take, Indices{})},
     {fails("take: index 2 at [0] is outside [0, 2)", take, zeros({2, 3}), Indices{2})}},
    {"one_hot",
     {several({}, [](Tensors const&) { return one_hot(some_indices, 3, DType::float64); })},
     {fails("one_hot: index 3 at [1] is outside [0, 3)", one_hot, integers({0, 3}, {2}), 3, DType::float64)},
     false},
}};

}  // namespace

}  // namespace heed::test
