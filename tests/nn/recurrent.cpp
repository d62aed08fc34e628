#include "nn/models/recurrent/recurrent.hpp"

#include "tests/nn/models.hpp"

// What is declared is tested; no cell is listed here.

TEST_SUITE("recurrent") {
  using namespace heed;
  using namespace heed::test;

  namespace {

  constexpr Index steps = 5, rows = 4, in = 3, width = 6;
  std::vector<Index> const some_lengths{3, 5, 1, 4};

  Tensor lengths() { return Tensor::of(some_lengths, {rows}); }

  States some_states(RecurrentCell const& cell, DType dtype = DType::float64) {
    States states;
    for (std::size_t k = 0; k < cell.begin(rows).size(); ++k)
      states.push_back(Tensor::normal({rows, cell.width()}, Stream(5, std::to_string(k)), dtype));
    return states;
  }

  /// Everything that a scan gives, weighed by fixed numbers.
  Tensor weighed(Scanned const& scanned) {
    auto const part = [](Tensor const& x, std::string const& name) {
      return sum(x * Tensor::normal(x.shape(), Stream(6, name), x.dtype()));
    };
    Tensor total = part(scanned.outputs, "outputs");
    for (std::size_t k = 0; k < scanned.last.size(); ++k) total = total + part(scanned.last[k], std::to_string(k));
    return total;
  }

  }  // namespace

  TEST_CASE("a scan is its steps one after the other, of each row as many as its length, forward and backward") {
    for (CellKind const& kind : Registry<CellKind>::all())
      for (bool const backward : {false, true})
        for (bool const normed : {false, true}) {
          INFO("kind.name ", kind.name, ", backward ", backward, ", normed ", normed);
          Parameters parameters(3, DType::float64, wide());
          RecurrentCell const cell(Scope(parameters), kind.name, in, width, normed);
          Tensor const x = some({steps, rows, in}, "x");
          auto const start = some_states(cell);
          Scanned const all = cell.scan(x, {lengths(), backward}, start, {});
          for (Index row = 0; row < rows; ++row) {
            States state = mapped(start, [row](Tensor const& each) { return slice(each, 0, row, row + 1); });
            Index const length = heed::at(some_lengths, row);
            auto const at = [row](Tensor const& of, auto t) { return reshape(slice(slice(of, 0, t, t + 1), 1, row, row + 1), {1, -1}); };
            for (Index i = 0; i < length; ++i) {
              Index const t = backward ? length - 1 - i : i;
              state = cell.step(at(x, t), state);
              check_close(at(all.outputs, t), state[0], 1e-12);
            }
            for (Index t = length; t < steps; ++t) check_close(at(all.outputs, t), Tensor::zeros({1, width}, DType::float64), 0);
            for (std::size_t k = 0; k < state.size(); ++k) check_close(slice(all.last[k], 0, row, row + 1), state[k], 1e-12);
          }
        }
  }

  TEST_CASE("the fused scan and its steps agree, values and gradients, in both precisions") {
    for (CellKind const& kind : Registry<CellKind>::all())
      for (DType const dtype : {DType::float64, DType::float32})
        for (Index const wide_as : {6, 37})
          for (bool const backward : {false, true}) {
            INFO("kind.name ", kind.name, ", dtype ", to_string(dtype), ", wide_as ", wide_as);
            double const bound = dtype == DType::float64 ? 1e-11 : 2e-4;
            Parameters parameters(3, dtype, wide());
            RecurrentCell const cell(Scope(parameters), kind.name, in, wide_as);
            Tensor x = some({steps, rows, in}, "x", dtype);
            x.set_requires_grad();
            auto start = some_states(cell, dtype);
            for (Tensor& each : start) each.set_requires_grad();
            std::vector<Tensor> leaves{x};
            leaves.insert(leaves.end(), start.begin(), start.end());
            for (auto const& [name, parameter] : parameters.all()) leaves.push_back(parameter);
            auto const run = [&] {
              Scanned const scanned = cell.scan(x, {lengths(), backward}, start, {});
              auto all = grad({weighed(scanned)}, leaves);
              all.push_back(scanned.outputs);
              return all;
            };
            auto const fused = run();
            ReferenceCells const no_kernels;
            auto const expected = run();
            for (std::size_t i = 0; i < fused.size(); ++i) check_close(fused[i], expected[i], bound);
          }
  }

  TEST_CASE("first and second derivatives of a cell, with padding, layers, both directions and layer norm") {
    for (CellKind const& kind : Registry<CellKind>::all())
      for (bool const normed : {false, true}) {
        INFO("kind.name ", kind.name, ", normed ", normed);
        RecurrentShape const shape{.cell = kind.name, .in = 2, .width = 3, .layers = 2, .bidirectional = true, .normed = normed};
        Parameters drawn(3, DType::float64, wide());
        Recurrent const made(Scope(drawn), shape);
        std::vector<Tensor> inputs{some({3, 2, 2}, "x")};
        for (auto const& [name, value] : drawn.all())
          inputs.push_back(value.detach() + 0.3 * Tensor::normal(value.shape(), Stream(7, name), DType::float64));
        TensorFunction const f = [&](std::vector<Tensor> const& given) {
          Parameters parameters = with_values(drawn, std::span(given).subspan(1));
          Recurrent const stack(Scope(parameters), shape);
          auto const result = stack(given[0], Tensor::of(std::vector<Index>{3, 2}, {2}), {}, {});
          return weighed({result.outputs, result.forward.back()}) + weighed({result.outputs, result.backward.back()});
        };
        check_ok(gradcheck(f, inputs, 1e-7, 1e-4, 12));
        check_ok(gradgradcheck(f, inputs, 1e-6, 1e-4, 3));
      }
  }

  TEST_CASE("what stands behind a length changes no bit of any result or gradient") {
    for (CellKind const& kind : Registry<CellKind>::all())
      for (bool const composed : {false, true}) {
        INFO("kind.name ", kind.name, ", composed ", composed);
        Parameters parameters(3, DType::float32, wide());
        Recurrent const stack(Scope(parameters),
                              {.cell = kind.name, .in = in, .width = width, .layers = 2, .bidirectional = true, .dropout = 0.3});
        auto const results = [&](double behind) {
          Tensor const step = reshape(Tensor::arange(steps, DType::float32), {steps, 1, 1});
          Tensor const is_behind = step >= reshape(lengths().to(DType::float32), {rows, 1});
          Tensor const x = masked_fill(some({steps, rows, in}, "x", DType::float32), is_behind, behind);
          parameters.clear_gradients();
          auto const result = stack(x, lengths(), {}, training());
          weighed({result.outputs, result.forward.back()}).backward();
          auto all = result.outputs.to_vector();
          append_gradients(all, parameters);
          return all;
        };
        if (!composed) CHECK(results(0) == results(1e6));
        ReferenceCells const no_kernels;
        CHECK(results(0) == results(1e6));
      }
  }

  TEST_CASE("one layer's cells stand at the scope, several at their numbers; an unknown cell is refused") {
    auto const names = [](Index layers) {
      Parameters parameters(3, DType::float64);
      Recurrent const stack(Scope(parameters).at("encoder"), {.cell = "lstm", .in = in, .width = width, .layers = layers});
      return parameters.all().back().first;
    };
    CHECK(names(1) == "encoder.forward.recurrent.bias");
    CHECK(names(2) == "encoder.1.forward.recurrent.bias");
    CHECK_THROWS_WITH_AS(cell_kind("lstn"), "cell: there is no 'lstn'; there are gru, lstm, tanh", Error);
  }
}
