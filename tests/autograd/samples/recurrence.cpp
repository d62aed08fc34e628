// Recurrent cells over time.

#include "autograd/ops/recurrence.hpp"

#include "tests/autograd/samples/operation_check.hpp"

namespace heed::test {

namespace {

Sample scan_sample(CellForm cell, ScanOrder const& order, Index width, bool biased) {
  Index const rows = 3, gates = gates_of(cell), states = states_of(cell);
  std::vector<SampleInput> inputs{{{4, rows, gates * width}}, {{gates * width, width}, {-1, 1}}};
  for (Index k = 0; k < states; ++k) inputs.push_back({{rows, width}, {-1, 1}});
  if (biased) inputs.push_back({{gates * width}});
  auto const by = [=](auto const& scanned) {
    return [=](Tensors const& x) {
      return scanned(cell, order, x[0], x[1], biased ? x.back() : Tensor(), States(x.begin() + 2, x.begin() + 2 + states));
    };
  };
  return {inputs, by(scan), by(scan_reference)};
}

std::vector<Sample> scan_samples() {
  Tensor const lengths = integers({2, 4, 1}, {3});
  std::vector<Sample> samples;
  for (CellForm const cell : {CellForm::tanh, CellForm::gru, CellForm::lstm}) {
    samples.push_back(scan_sample(cell, {}, 3, true));
    samples.push_back(scan_sample(cell, {lengths, false}, 2, false));
    samples.push_back(scan_sample(cell, {lengths, true}, 2, true));
  }
  return samples;
}

DeclaredChecks const recurrence_checks{{
    {"scan",
     scan_samples(),
     {fails("scan: a [4, 2, 9], weight [9, 3], bias none, 2 states [2, 3]", scan, CellForm::lstm, ScanOrder{}, zeros({4, 2, 9}),
            zeros({9, 3}), Tensor(), States{zeros({2, 3}), zeros({2, 3})})}},
}};

}  // namespace

}  // namespace heed::test
