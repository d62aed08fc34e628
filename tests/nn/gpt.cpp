#include <doctest/doctest.h>

#include "nn/models/blocks.hpp"

TEST_SUITE("gpt") {
  using namespace heed;

  namespace {

  constexpr std::int64_t vocabulary = 65;

  }  // namespace

  TEST_CASE("mlp_width: the hidden width of the MLP, four times the width unless given") {
    auto const made = [](std::optional<std::int64_t> mlp_width, Parameters& parameters, std::string const& activation = "gelu") {
      GptSettings settings;
      settings.layers = settings.heads = 2;
      settings.width = 64;
      settings.mlp_width = mlp_width;
      settings.activation = activation;
      return Gpt(parameters, settings, vocabulary);
    };
    for (std::string const activation : {"gelu", "swiglu"}) {
      CAPTURE(activation);
      std::int64_t const matrices = activation == "swiglu" ? 3 : 2;
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
}
