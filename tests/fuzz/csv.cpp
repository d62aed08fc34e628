#include "experiments/report/material.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static constexpr std::string_view summary = R"({"ablation":"x","metric":"loss","seeds":[1,2],"arms":[{"name":"a"},{"name":"b"}]})";
  fuzz::file_of("summary.json", reinterpret_cast<std::uint8_t const*>(summary.data()), summary.size());
  fuzz::file_of("results.csv", data, size);
  fuzz::reads([&] { read_material(fuzz::folder()); });
  return 0;
}
