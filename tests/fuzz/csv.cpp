#include "experiments/report/material.hpp"
#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  static constexpr std::string_view summary = R"({"ablation":"x","metric":"loss","seeds":[1,2],"arms":[{"name":"a"},{"name":"b"}]})";
  file_of("summary.json", summary);
  file_of("results.csv", text);
  reads([&] { read_material(folder()); });
}
