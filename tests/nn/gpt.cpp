#include "autograd/graph_memory.hpp"
#include "autograd/ops/operations.hpp"
#include "nn/models/blocks.hpp"
#include "tests/nn/models.hpp"

TEST_SUITE("gpt") {
  using namespace heed;

  TEST_CASE("mlp_width: the hidden width of the MLP, four times the width unless given") {
    auto const made = [](std::optional<Index> mlp_width, Parameters& parameters, std::string const& activation = "gelu") {
      auto settings = test::sized<GptSettings>(2, 2, 64, 64);
      settings.mlp_width = mlp_width;
      settings.activation = activation;
      return Gpt(parameters, settings, 65);
    };
    for (std::string const activation : {"gelu", "swiglu"}) {
      CAPTURE(activation);
      Index const matrices = activation == "swiglu" ? 3 : 2;
      Parameters usual(1, DType::float32), same(1, DType::float32), narrow(1, DType::float32);
      Gpt const of_usual = made({}, usual, activation), of_same = made(256, same, activation), of_narrow = made(96, narrow, activation);
      for (std::size_t i = 0; i < usual.all().size(); ++i) CHECK(usual.all()[i].second.to_vector() == same.all()[i].second.to_vector());
      CHECK(narrow.find("blocks.1.mlp.up.weight")->shape() == Shape{96, 64});
      CHECK(narrow.find("blocks.1.mlp.down.weight")->shape() == Shape{64, 96});
      CHECK(usual.elements() - narrow.elements() == 2 * (256 - 96) * (matrices * 64 + matrices - 1));
      CHECK(of_usual.flops_per_token() == of_same.flops_per_token());
      CHECK(of_usual.flops_per_token() - of_narrow.flops_per_token() == 2 * 2 * (256 - 96) * 64.0 * static_cast<double>(matrices));
    }
  }

  TEST_CASE("mlp in a graph for second derivatives: the same value, gradients and Hessian's product, in three quarters of the memory") {
    for (std::string const activation : {"gelu", "swiglu"})
      for (bool const with_residual : {false, true}) {
        INFO("activation ", activation, ", with_residual ", with_residual);
        Parameters parameters(1, DType::float64);
        Mlp const mlp(Scope(parameters).at("mlp"), 32, 128, activation, true, 1);
        std::vector<Tensor> leaves{Tensor::normal({3, 1100, 32}, Stream(1, "x"), DType::float64).set_requires_grad()}, along;
        for (auto const& [name, parameter] : parameters.all()) leaves.push_back(parameter);
        for (Tensor const& leaf : leaves) along.push_back(Tensor::normal(leaf.shape(), Stream(2, "along"), DType::float64));
        auto const result = [&](bool by_rows) {
          std::optional<ForSecondDerivatives> here;
          if (by_rows) here.emplace();
          reset_memory_peak();
          Index const before = memory_use().live;
          Tensor y = mlp(leaves[0], with_residual ? leaves[0] : Tensor());
          std::vector<Tensor> all{y.detach()};
          std::vector<Tensor> gradients = grad({sum(y * y)}, leaves, {}, true);
          y = Tensor();
          for (Tensor const& g : gradients) all.push_back(g.detach());
          for (Tensor const& product : grad(std::move(gradients), leaves, along)) all.push_back(product);
          return std::pair(all, memory_use().peak - before);
        };
        auto const [found, peak] = result(true);
        auto const [expected, whole_peak] = result(false);
        CHECK(!for_second_derivatives());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          CAPTURE(i);
          CHECK(test::relative_difference(found[i], expected[i]) <= 1e-12);
        }
        CHECK(4 * peak < 3 * whole_peak);
      }
  }
}
