#pragma once

#include "experiments/report/gnuplot.hpp"
#include "experiments/report/page.hpp"
#include "experiments/report/report.hpp"
#include "nn/files/npz.hpp"
#include "tests/json.hpp"

namespace heed::test {

/// Names that mean something to HTML, to gnuplot, to a shell, to CSV; one of an arm that never ended.
inline std::vector<std::string> const names{"plain", "</script><script>alert(1)</script>", "it's `x` \"$y\" {z}_a^b\\ & é", "a,b",
                                            "absent"};

inline std::string field(std::string const& text) {
  std::string result = "\"";
  for (char const c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + "\"";
}

inline bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

/// The page of a folder.
inline std::string reported(std::filesystem::path const& folder) {
  write_report(folder, true);
  return get(folder / "report.html");
}

/// The folder of a finished ablation, as heed run leaves it: four arms × three seeds, one that is NaN on its way, one that failed.
struct Finished {
  Folder folder;
  std::filesystem::path path = folder.path();

  Finished() {
    OrderedJson summary{
        {"ablation", "odd <b>"}, {"metric", "validation.loss"}, {"better", "lower"},         {"at", "last"},    {"unit", "nat"},
        {"margin", 0.01},        {"seeds", {1, 2, 3}},          {"baseline", names.front()}, {"varied", {"x"}}, {"steps", 40}};
    std::string csv = "arm,x,seed,step,metric,value\n";
    for (std::size_t i = 0; i < names.size(); ++i) {
      OrderedJson arm{{"name", names[i]},
                      {"keys", {{"x", std::to_string(i)}}},
                      {"folders", OrderedJson::array()},
                      {"parameters", 12},
                      {"values", OrderedJson::object()}};
      bool const absent = names[i] == "absent";
      for (int seed = 1; !absent && seed <= 3; ++seed) {
        arm["folders"].push_back(fmt::format("arm{}-seed{}-0", i, seed));
        arm["values"][std::to_string(seed)] = 2 + 0.1 * static_cast<double>(i) + 0.01 * seed;
        for (int step = 0; step <= 40; step += 10) {
          auto const row = [&](char const* metric, double value) {
            csv += fmt::format("{},{},{},{},{},{}\n", field(names[i]), i, seed, step, metric, value);
          };
          row("validation.loss", i == 3 && step == 20 ? std::nan("") : 3 - 0.02 * step + 0.1 * static_cast<double>(i) + 0.01 * seed);
          row("probe.attention.entropy.layer0.head0", 2 - 0.03 * step);
          row("probe.attention.entropy.layer1.head0", i == 3 ? std::nan("") : 1 - 0.01 * step);
        }
      }
      if (!absent) {
        arm["mean"] = 2.02 + 0.1 * static_cast<double>(i);
        arm["interval"] = {2.0 + 0.1 * static_cast<double>(i), 2.04 + 0.1 * static_cast<double>(i)};
        arm["time.seconds"] = 1.25;
      }
      if (!absent && i > 0)
        arm["difference"] = {
            {"mean", 0.1 * static_cast<double>(i)}, {"interval", {0.05, 0.4}}, {"p", 0.25}, {"effect", nullptr}, {"verdict", "worse"}};
      summary["arms"].push_back(arm);
    }
    summary["failures"] = {
        {{"arm", "absent"}, {"seed", 1}, {"folder", "f"}, {"message", "step 3: NaN in <softmax>"}, {"log", {"a <log>", "end"}}}};
    summary["missing"] = {{{"arm", "absent"}, {"seed", 2}}};
    summary["sentences"] = {"a,b is worse & so on"};
    summary["warnings"] = {"different <revisions>"};
    summary["environment"] = {{"revision", "abc"}, {"dirty", true}, {"processor", "P&Q"}, {"threads", 1}};
    summary["configuration"] = "vary: {x: [<1>]}\n";
    put(path / "summary.json", summary.dump());
    put(path / "results.csv", csv);
  }

  /// Maps of two examples of four tokens, in which query i looks at key 0 with weight i/10.
  void put_maps(std::size_t arm, std::vector<int> const& steps, Index n = 4) const {
    auto const attention = path / fmt::format("arm{}-seed1-0", arm) / "attention";
    std::filesystem::create_directories(attention);
    std::vector<double> weights;
    std::vector<std::string> labels;
    for (Index row = 0; row < 2 * 2 * n; ++row)
      for (Index key = 0; key < n; ++key) weights.push_back(key == 0 ? 0.1 * static_cast<double>(row % n) : 0);
    for (Index i = 0; i < 2 * n; ++i) labels.push_back(i == 1 ? "</script>" : fmt::format("w{}", i));
    for (int const step : steps)
      write_npz(attention / fmt::format("step-{:06}.npz", step),
                {NpyArray::of("tokens", Tensor::zeros({2, n}, DType::int64)), NpyArray::of("labels", labels),
                 NpyArray::of("layer0.weights", Tensor::of(weights, {2, 2, n, n}, DType::float32))});
  }

  /// The first trial's maps, with another array in the place of the one of its name, are left out with a warning.
  void refuse_map(std::vector<NpyArray> arrays, NpyArray const& changed, std::string const& message) const {
    *std::ranges::find(arrays, changed.name, &NpyArray::name) = changed;
    write_npz(path / "arm0-seed1-0/attention/step-000000.npz", arrays);
    auto material = read_material(path);
    attention_maps(material, 100'000);
    CHECK(has(material.warnings.back(), message));
  }

  std::string report() const { return reported(path); }
};

inline Plot plot(std::string const& commands = "plot x\n") { return {.title = "a", .commands = commands}; }

inline bool gnuplot_is_there() {
  static bool const there = draw_plots({plot()}).has_value();
  if (!there) MESSAGE("gnuplot is not installed: figures are not tested");
  return there;
}

}  // namespace heed::test
