#include "experiments/report/figures.hpp"
#include "experiments/report/page.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace heed;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::file_of("summary.json", data, size);
  static constexpr std::string_view rows = "arm,x,seed,step,metric,value\na,1,1,0,loss,3\na,1,1,5,loss,2\nb,2,1,0,loss,3\nb,2,1,5,loss,1\n";
  fuzz::file_of("results.csv", reinterpret_cast<std::uint8_t const*>(rows.data()), rows.size());
  fuzz::reads([&] {
    Chapter chapter{.material = read_material(fuzz::folder()), .figures = {}, .drawings = {}, .maps = {}};
    chapter.figures = figures(chapter.material);
    page({chapter});
  });
  return 0;
}
