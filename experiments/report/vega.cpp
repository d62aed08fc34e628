#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "experiments/report/html.hpp"
#include "experiments/report/page.hpp"

namespace heed {

namespace {

constexpr char const* folder = "/usr/share/javascript/vega/";

/// The modules that a heat map needs, each after those that it uses: name and file. (vega-selections is called by its file's name here.)
constexpr std::pair<char const*, char const*> modules[] = {
    {"vega-util", "vega-util"},
    {"vega-time", "vega-time"},
    {"vega-format", "vega-format"},
    {"vega-loader", "vega-loader"},
    {"vega-canvas", "vega-canvas"},
    {"vega-scale", "vega-scale"},
    {"vega-dataflow", "vega-dataflow"},
    {"vega-statistics", "vega-statistics"},
    {"vega-event-selector", "vega-event-selector"},
    {"vega-expression", "vega-expression"},
    {"vega-selections", "vega-selection"},
    {"vega-scenegraph", "vega-scenegraph"},
    {"vega-functions", "vega-functions"},
    {"vega-runtime", "vega-runtime"},
    {"vega-transforms", "vega-transforms"},
    {"vega-view-transforms", "vega-view-transforms"},
    {"vega-encode", "vega-encode"},
    {"vega-view", "vega-view"},
    {"vega-parser", "vega-parser"},
    {"vega-interpreter", "vega-interpreter"},
};

}  // namespace

std::optional<std::string> vega_program() {
  // Each file calls define(names, make), as the convention of asynchronous modules wants; here they come in order.
  auto program = fmt::format("/*\n{}*/\nconst modules = {{}};\n", vega_licences);
  for (auto const& [name, file_name] : modules) {
    std::ifstream file(fmt::format("{}{}.min.js", folder, file_name), std::ios::binary);
    if (!file) return std::nullopt;
    std::string source(std::istreambuf_iterator<char>(file), {});
    // Debuggers' hints at files that are not there.
    if (auto const hint = source.rfind("//# sourceMappingURL"); hint != source.npos) source.resize(hint);
    for (std::size_t at = 0; (at = source.find("</script", at)) != source.npos; at += 9) source.insert(at + 1, "\\");
    program += fmt::format(
        "{{ const own = modules['{}'] = {{}};\n"
        "const define = (names, make) => make(...names.map(name => name === 'exports' ? own : modules[name]));\n"
        "define.amd = true;\n{}\n}}\n",
        name, source);
  }
  return program +
         "const vega = Object.assign({}, ...Object.values(modules));\n"
         "Object.assign(modules['vega-dataflow'].transforms, modules['vega-transforms'], modules['vega-view-transforms'], "
         "modules['vega-encode']);\n";
}

}  // namespace heed
