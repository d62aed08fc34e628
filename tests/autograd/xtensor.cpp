// Tensors from and to xtensor: which arrays are shared, who keeps them, what is refused.

#include "autograd/xtensor.hpp"

#include "tests/autograd/tensors.hpp"

namespace heed::test {

TEST_SUITE_BEGIN("xtensor");

TEST_CASE_TEMPLATE("a container that is moved in keeps its array, and lives as long as the last tensor", T, float, double, Index) {
  xt::xarray<T> array = xt::ones<T>({2, 3});
  array(1, 2) = 7;
  auto const* const elements = array.data();
  Tensor tensor = from_xtensor(std::move(array));
  CHECK(tensor.shape() == Shape{2, 3});
  CHECK(tensor.data<T>().data() == elements);
  Tensor const row = tensor.rows(1, 1);
  tensor = {};
  CHECK(row.to_vector() == std::vector<double>{1, 1, 7});
}

TEST_CASE("memory that is not the pool's goes back to its owner with the last tensor, once") {
  int freed = 0;
  double value = 3;
  {
    Tensor const tensor = Tensor::at_memory(&value, {1}, DType::float64, std::shared_ptr<void>(&value, [&](void*) { ++freed; }));
    Tensor const copy = tensor, view = tensor.viewed({});
    CHECK(view.item() == 3);
    CHECK(freed == 0);
  }
  CHECK(freed == 1);
  for (int i = 0; i < 10; ++i) Tensor(Shape{1}, DType::float64);  // the pool's block is an ordinary one again
  CHECK(freed == 1);
}

TEST_CASE("a borrowed array is read in place and never written by the engine") {
  xt::xtensor<double, 2> array = xt::ones<double>({3, 4});
  Tensor const whole = borrow_xtensor(array), part = borrow_xtensor(xt::view(array, xt::range(1, 3), xt::all()));
  CHECK(whole.data<double>().data() == array.data());
  CHECK(part.data<double>().data() == array.data() + 4);
  CHECK(part.shape() == Shape{2, 4});
  CHECK_FALSE(whole.sole_owner());
  array(1, 0) = 5;
  CHECK(part.at(0) == 5);
  // The gradient of a sum that begins with a borrowed seed.
  Tensor const x = Tensor::zeros({3, 4}, DType::float64).set_requires_grad();
  backward(x + x, whole);
  CHECK(array(0, 0) == 1);
  CHECK(x.grad().at(0) == 2);
}

TEST_CASE("a strided view is refused by name, and copied on request") {
  xt::xarray<float> array = xt::zeros<float>({2, 3});
  std::iota(array.begin(), array.end(), 0.0F);
  auto const columns = xt::view(array, xt::all(), xt::range(0, 2));
  CHECK_THROWS_WITH_AS(borrow_xtensor(columns),
                       "xtensor: the array is not contiguous in row-major order: [2, 2] with stride 3 in axis 0 (copy_xtensor() takes any)",
                       Error);
  CHECK(copy_xtensor(columns).to_vector() == std::vector<double>{0, 1, 3, 4});
  CHECK(copy_xtensor(xt::transpose(array)).to_vector() == std::vector<double>{0, 3, 1, 4, 2, 5});
  CHECK(copy_xtensor(2.0F * array).shape() == Shape{2, 3});
}

TEST_CASE("a tensor's array as an xtensor container: read, written, of its shape") {
  Tensor tensor = Tensor::of(std::vector<double>{1, 2, 3, 4}, {2, 2});
  as_xtensor<double>(tensor) *= 2;
  auto const view = as_xtensor<double>(std::as_const(tensor));
  CHECK(view(1, 0) == 6);
  CHECK(view.data() == std::as_const(tensor).data<double>().data());
  CHECK(view.dimension() == 2);
  CHECK_THROWS_AS(as_xtensor<float>(tensor), Error);
  Tensor const scalar = Tensor::scalar(4, DType::float64);
  CHECK(as_xtensor<double>(scalar)() == 4);
  Tensor const none = Tensor::zeros({0, 3}, DType::float64);
  CHECK(as_xtensor<double>(none).size() == 0);
}

TEST_SUITE_END();

}  // namespace heed::test
