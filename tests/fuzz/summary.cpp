#include "experiments/report/page.hpp"
#include "experiments/report/traces.hpp"
#include "tests/fuzz/fuzz.hpp"

void heed::fuzz::one_input(std::string_view text) {
  file_of("summary.json", text);
  static constexpr std::string_view rows = "arm,x,seed,step,metric,value\na,1,1,0,loss,3\na,1,1,5,loss,2\nb,2,1,0,loss,3\nb,2,1,5,loss,1\n";
  file_of("results.csv", rows);
  reads([&] {
    Chapter chapter{.material = read_material(folder()), .figures = {}, .drawings = {}, .maps = {}};
    chapter.figures = figures(chapter.material);
    page({chapter});
  });
}
