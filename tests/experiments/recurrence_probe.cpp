#include "autograd/ops/product.hpp"
#include "experiments/metric/probe/prober.hpp"
#include "tests/experiments/written.hpp"

TEST_SUITE("recurrence_probe") {
  using namespace heed;

  TEST_CASE("through_time: of a network that its input leaves near zero, the norm of powers of its matrix") {
    auto const loaded = test::written(
        "data: {kind: grammar, validation: 400, ngram_sentences: 10, pack: true}\n"
        "model: {kind: recurrent_lm, cell: tanh, width: 64, embedding: 1, context: 33}\n"
        "init: {std: 0.05}\n"
        "train: {steps: 1, batch: 64}\n"
        "probes: {gradients: [through_time]}\n");
    Trainer trainer(loaded, true);
    Row row;
    Prober(loaded.settings.probes, 64, 0, trainer.model(), trainer.parameters(), trainer.data()).observe(row);
    auto const found = test::by_name(row);

    Tensor power = trainer.parameters().find("cells.forward.recurrent.weight")->detach().to(DType::float64);
    for (int lag = 1; lag <= 16; lag *= 2) {
      CAPTURE(lag);
      double squares = 0;
      for (double const x : power.to_vector()) squares += x * x;
      auto const name = "probe.gradients.through_time.cell0.lag" + std::to_string(lag);
      REQUIRE(found.contains(name));
      CHECK(std::abs(found.at(name) / std::sqrt(squares / 64) - 1) < 0.1);
      power = matmul(power, power);
    }
    CHECK(found.at("probe.gradients.through_time.cell0.slope") == doctest::Approx(std::log(0.05 * 8)).epsilon(0.1));
  }
}
