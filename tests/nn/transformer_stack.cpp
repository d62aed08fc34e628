#include "nn/models/transformer_stack.hpp"

#include <doctest/doctest.h>

#include "autograd/graph_memory.hpp"
#include "autograd/memory.hpp"
#include "nn/models/gpt.hpp"

TEST_SUITE("transformer_stack") {
  using namespace heed;

  namespace {

  constexpr std::int64_t batch = 12, vocabulary = 65;

  /// nanoGPT's configuration for a CPU, or a smaller one.
  GptSettings sized(std::string const& size) {
    GptSettings settings;
    settings.layers = size == "nano" ? 4 : 2;
    settings.heads = size == "nano" ? 4 : 2;
    settings.width = size == "nano" ? 128 : 64;
    settings.context = size == "nano" ? 64 : 32;
    return settings;
  }

  /// The pool's bytes that a loss and its gradient hold at their peak, where the parameters have gradients already.
  double peak(Gpt const& model) {
    Tensor const tokens = Tensor::full({batch, model.context()}, 1, DType::int64);
    model.loss({{"inputs", tokens}, {"targets", tokens}}, {}).backward();
    std::int64_t const before = memory_use().live;
    reset_memory_peak();
    model.loss({{"inputs", tokens}, {"targets", tokens}}, {}).backward();
    return static_cast<double>(memory_use().peak - before);
  }

  }  // namespace

  TEST_CASE("mlp_width: that of the perceptron, four times the width unless given") {
    auto const made = [](std::optional<std::int64_t> mlp_width, Parameters& parameters, std::string const& activation = "gelu") {
      GptSettings settings = sized("tiny");
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
      for (std::int64_t const width : {16, 96, 1024}) {
        CAPTURE(width);
        Parameters parameters(1, DType::float32);
        Gpt const model = made(width, parameters, activation);
        CHECK(model.peak_bytes({.batch = batch, .tokens = model.context()}) / peak(model) == doctest::Approx(1).epsilon(0.15));
      }
    }
  }

  TEST_CASE("peak_bytes: near the peak of a pass and its gradient, whether norms and activations are made again or not") {
    std::int64_t const before = recompute_bytes();
    for (std::string const size : {"tiny", "nano"}) {
      for (char const* const activation : {"gelu", "relu", "swiglu"}) {
        for (std::int64_t const from : {std::int64_t{0}, 4 * batch * 64 * 256, std::int64_t{1} << 40}) {
          CAPTURE(size);
          CAPTURE(activation);
          CAPTURE(from);
          set_recompute_bytes(from);
          GptSettings settings = sized(size);
          settings.activation = activation;
          Parameters parameters(1, DType::float32);
          Gpt const model(parameters, settings, vocabulary);
          double const share = model.peak_bytes({.batch = batch, .tokens = model.context()}) / peak(model);
          CHECK(share > 0.85);
          CHECK(share < 1.15);
        }
      }
    }
    set_recompute_bytes(before);
  }
}
