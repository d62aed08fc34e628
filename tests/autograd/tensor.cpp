#include "autograd/tensor.hpp"

#include "tests/autograd/tensors.hpp"
#include "tests/refusal.hpp"

using namespace heed;
using test::refusal, test::Values, test::vector_of;
using Integers = std::vector<Index>;

TEST_SUITE("tensor") {
  TEST_CASE("shapes: extents, elements, axes from either end") {
    Shape const shape{2, 3, 4};
    CHECK(shape.rank() == 3);
    CHECK(shape.elements() == 24);
    CHECK(shape[0] == 2);
    CHECK(shape[-1] == 4);
    CHECK(shape.position(-3) == 0);
    CHECK(to_string(shape) == "[2, 3, 4]");
    CHECK(Shape{}.elements() == 1);
    CHECK(to_string(Shape{}) == "[]");
    CHECK(Shape{0, 5}.elements() == 0);
    CHECK(Shape{2, 3} == Shape{2, 3});
    CHECK(Shape{2, 3} != Shape{3, 2});
    CHECK(Shape{2} != Shape{2, 1});
    CHECK(refusal([&] { shape[3]; }) == "axis 3 is out of range for the shape [2, 3, 4]");
    CHECK(refusal([&] { shape[-4]; }) == "axis -4 is out of range for the shape [2, 3, 4]");
    CHECK(refusal([] { Shape{2, -1}; }) == "a shape cannot have the extent -1");
    CHECK(refusal([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }) ==
          "a shape has at most 8 axes; [1, 1, 1, 1, 1, 1, 1, 1] and another are too many");
    Shape const huge{1LL << 40, 1LL << 40};
    CHECK(refusal([&] { huge.elements(); }) == "the shape [1099511627776, 1099511627776] has too many elements to count");
    CHECK(refusal([] { Tensor(Shape{1LL << 61}, DType::float64); }) == "the shape [2305843009213693952] has too many elements to count");
  }

  TEST_CASE("shapes broadcast as NumPy's do") {
    CHECK(broadcast({2, 3}, {3}, "add") == Shape{2, 3});
    CHECK(broadcast({4, 1}, {3, 1, 5}, "add") == Shape{3, 4, 5});
    CHECK(broadcast({}, {2}, "add") == Shape{2});
    CHECK(broadcast({1}, {0}, "add") == Shape{0});
    CHECK(broadcast({1, 1}, {1}, "add") == Shape{1, 1});
    CHECK(refusal([] { broadcast({2, 3}, {2}, "add"); }) == "add: shapes do not broadcast: [2, 3] and [2]");
    CHECK(refusal([] { broadcast({0}, {2}, "add"); }) == "add: shapes do not broadcast: [0] and [2]");
  }

  TEST_CASE("what tensors are made of") {
    CHECK(Tensor::full({2, 2}, 1.5, DType::float32).to_vector() == Values(4, 1.5));
    CHECK(Tensor::full({2}, 3, DType::int64).to_vector() == Values{3, 3});
    CHECK(Tensor::zeros({3}, DType::float64).to_vector() == Values(3, 0));
    CHECK(Tensor::ones({3}, DType::float64).to_vector() == Values(3, 1));
    CHECK(Tensor::scalar(2.5, DType::float64).shape() == Shape{});
    for (DType const dtype : {DType::float32, DType::float64, DType::int64}) {
      Tensor const range = Tensor::arange(4, dtype);
      CHECK(range.dtype() == dtype);
      CHECK(range.to_vector() == Values{0, 1, 2, 3});
    }
    CHECK(Tensor::arange(0, DType::int64).elements() == 0);
    Tensor const matrix = Tensor::of(Values{1, 2, 3, 4, 5, 6}, {2, 3});
    CHECK(matrix.dtype() == DType::float64);
    CHECK(matrix.rank() == 2);
    CHECK(matrix.size(-1) == 3);
    CHECK(matrix.at(4) == 5);
    CHECK(Tensor::of(Values{0.1}, {1}, DType::float32).at(0) == 0.1F);
    Index const beyond_doubles = (Index{1} << 53) + 1;
    CHECK(Tensor::of(Integers{beyond_doubles}, {1}).data<std::int64_t>()[0] == beyond_doubles);
    CHECK(refusal([] { Tensor::of(Values{1, 2}, {3}); }) == "tensor: 2 values do not fill the shape [3]");
    CHECK(refusal([] { Tensor::of(Integers{1, 2}, {2, 2}); }) == "tensor: 2 values do not fill the shape [2, 2]");
  }

  TEST_CASE("dtypes") {
    for (auto const& [dtype, name, bytes] :
         {std::tuple{DType::float32, "float32", 4}, {DType::float64, "float64", 8}, {DType::int64, "int64", 8}}) {
      CHECK(std::string(to_string(dtype)) == name);
      CHECK(bytes_of(dtype) == bytes);
    }
  }

  TEST_CASE("an undefined tensor says so") {
    Tensor const nothing;
    CHECK(!nothing.defined());
    CHECK(!nothing.requires_grad());
    CHECK(!nothing.grad().defined());
    CHECK(refusal([&] { nothing.data<float>(); }) == "tensor: the elements of [] are not there (undefined, or freed by backward)");
    CHECK(refusal([&] { nothing.item(); }) != "");
    CHECK(refusal([&] { nothing.to_vector(); }) != "");
    CHECK(refusal([&] { nothing.clone(); }) != "");
  }

  TEST_CASE("elements are asked for in the tensor's own type") {
    Tensor x = Tensor::of(Values{1, 2}, {2});
    CHECK(x.data<double>()[1] == 2);
    x.mutable_data<double>()[1] = 7;
    CHECK(x.at(1) == 7);
    CHECK(refusal([&] { x.data<float>(); }) == "tensor: float32 elements asked of a float64 tensor [2]");
    CHECK(refusal([&] { x.mutable_data<std::int64_t>(); }) == "tensor: int64 elements asked of a float64 tensor [2]");
    CHECK(refusal([&] { x.at(2); }) == "tensor: element 2 of a tensor [2]");
    CHECK(refusal([&] { x.at(-1); }) == "tensor: element -1 of a tensor [2]");
    CHECK(refusal([&] { x.item(); }) == "item: a tensor [2] is not a single element");
    CHECK(Tensor::of(Values{3}, {1, 1}).item() == 3);
  }

  TEST_CASE("copies are handles; clones are not; views share") {
    Tensor x = Tensor::of(Values{1, 2, 3, 4, 5, 6}, {3, 2});
    Tensor const handle = x, clone = x.clone(), view = x.viewed({2, 3}), rows = x.rows(1, 2), detached = x.detach();
    CHECK(!x.sole_owner());
    x.mutable_data<double>()[2] = 30;
    CHECK(handle.at(2) == 30);
    CHECK(view.at(2) == 30);
    CHECK(detached.at(2) == 30);
    CHECK(rows.to_vector() == Values{30, 4, 5, 6});
    CHECK(clone.at(2) == 3);
    CHECK(view.shares_array_with(x));
    CHECK(!clone.shares_array_with(x));
    CHECK(rows.shape() == Shape{2, 2});
    CHECK(x.rows(3, 0).shape() == Shape{0, 2});
    CHECK(x.rows(1, 1).rows(0, 1).to_vector() == Values{30, 4});
    CHECK(rows.viewed({4}).to_vector() == Values{30, 4, 5, 6});
    CHECK(rows.clone().to_vector() == Values{30, 4, 5, 6});
    CHECK(refusal([&] { x.viewed({4}); }) == "reshape: [3, 2] elements do not fit [4]");
    CHECK(refusal([&] { x.rows(2, 2); }) == "rows: 2 rows from 2 of a tensor [3, 2]");
    CHECK(refusal([&] { x.rows(-1, 1); }) == "rows: 1 rows from -1 of a tensor [3, 2]");
    CHECK(refusal([] { Tensor::scalar(1, DType::float32).rows(0, 1); }) == "rows: 1 rows from 0 of a tensor []");
  }

  TEST_CASE("a view outlives what it views") {
    Tensor const view = Tensor::of(Values{1, 2, 3, 4}, {2, 2}).rows(1, 1);
    CHECK(view.to_vector() == Values{3, 4});
    CHECK(view.sole_owner());
  }

  TEST_CASE("operations leave their inputs alone") {
    Tensor const x = vector_of({1, 2}), y = vector_of({3, 4}), z = x + y;
    CHECK(z.to_vector() == Values{4, 6});
    CHECK(x.to_vector() == Values{1, 2});
    CHECK(y.to_vector() == Values{3, 4});
    CHECK(!z.shares_array_with(x));
  }

  TEST_CASE("conversions: rounding, truncation, itself") {
    Tensor const x = vector_of({1.0 / 3, -2.7, 2.7}), narrow = x.to(DType::float32);
    CHECK(x.to(DType::float64).shares_array_with(x));
    CHECK(narrow.at(0) == static_cast<double>(1.0F / 3));
    CHECK(narrow.to(DType::float64).at(0) == narrow.at(0));
    CHECK(x.to(DType::int64).to_vector() == Values{0, -2, 2});
    CHECK(Tensor::of(Integers{7}, {1}).to(DType::float32).item() == 7);
    double const infinity = std::numeric_limits<double>::infinity();
    CHECK(vector_of({1e300}).to(DType::float32).item() == infinity);
    CHECK(std::isnan(vector_of({std::nan("")}).to(DType::float32).item()));
  }

  TEST_CASE("leaves: made, unmade, with gradients that can be set and cleared") {
    Tensor x = Tensor::of(Values{1, 2}, {2});
    CHECK(!x.requires_grad());
    CHECK(refusal([&] { x.set_grad(x); }) == "set_grad: the tensor does not require a gradient");
    Tensor const before = x;
    x.set_requires_grad();
    CHECK(x.requires_grad());
    CHECK(!before.requires_grad());  // a handle of its own
    Tensor const handle = x;
    sum(x * x).backward();
    CHECK(handle.grad().to_vector() == Values{2, 4});  // handles share the leaf
    x.set_requires_grad();
    CHECK(x.grad().defined());  // and it stays the same leaf
    x.set_grad(Tensor::ones({2}, DType::float64));
    CHECK(handle.grad().to_vector() == Values{1, 1});
    x.clear_grad();
    CHECK(!handle.grad().defined());
    CHECK(!x.detach().requires_grad());
    CHECK(!x.clone().requires_grad());
    CHECK(!x.viewed({2, 1}).requires_grad());
    x.set_requires_grad(false);
    CHECK(!x.requires_grad());

    Tensor y = handle * handle;
    y.set_requires_grad();  // a result becomes a leaf of its own
    sum(y).backward();
    CHECK(y.grad().defined());
    CHECK(!handle.grad().defined());
    CHECK(refusal([] { Tensor::arange(2, DType::int64).set_requires_grad(); }) == "requires_grad: integers have no gradient");
  }

  TEST_CASE("hollow tensors keep shape, dtype and node") {
    Tensor const x = Tensor::ones({2, 3}, DType::float32).set_requires_grad(), hollow = x.hollow();
    CHECK(hollow.shape() == x.shape());
    CHECK(hollow.dtype() == DType::float32);
    CHECK(hollow.node() == x.node());
    CHECK(!hollow.defined());
    CHECK(refusal([&] { hollow.data<float>(); }) == "tensor: the elements of [2, 3] are not there (undefined, or freed by backward)");
  }
}
