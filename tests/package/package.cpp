// heed as a library: installed, found by another project, and as a part of one. The programs are autograd/README.md's. And what the other
// README files tell one to write: a score compiles as it stands there, and passes the suites that they name.

#include <cstdio>
#include <regex>

#include <fmt/ranges.h>

#include "experiments/config/build_info.hpp"
#include "tests/folder.hpp"

namespace heed::test {

namespace {

/// A README's n-th block of a language, n from 0.
std::string block(std::string const& language, int n, std::string const& manual = "autograd/README.md") {
  std::string const page = get(manual);
  std::string const fence = "```" + language + "\n";
  std::size_t begin = page.find(fence);
  for (; n > 0; --n) begin = page.find(fence, begin + 1);
  REQUIRE(begin != std::string::npos);
  begin += fence.size();
  return page.substr(begin, page.find("```\n", begin) - begin);
}

/// Runs a command; what it said.
std::string shell(Folder const& folder, std::string const& command) {
  auto const log = folder / "log";
  int const status = std::system(fmt::format("{{ {}; }} > {} 2>&1", command, log.string()).c_str());
  std::string const said = get(log);
  INFO(command << "\n" << said);
  REQUIRE(status == 0);
  return said;
}

std::string build_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path().string(); }

void write_project(Folder const& folder) {
  put(folder / "CMakeLists.txt", block("cmake", 0));
  put(folder / "mlp.cpp", block("cpp", 0));
  put(folder / "gpt.cpp", block("cpp", 1));
  put(folder / "operations.cpp", block("cpp", 2));
}

TEST_SUITE_BEGIN("package");

TEST_CASE_FIXTURE(InFolder, "a project finds the installed package, and its programs run") {
  write_project(folder);
  auto const at = folder.path().string();
  shell(folder, fmt::format("cmake --install {} --component library --prefix {}/prefix", build_folder(), at));
  CHECK_FALSE(std::filesystem::exists(folder / "prefix/bin"));
  shell(folder, fmt::format("cmake -G Ninja -S {0} -B {0}/build -DCMAKE_PREFIX_PATH={0}/prefix", at));
  shell(folder, fmt::format("cmake --build {}/build", at));
  std::string const trained = shell(folder, fmt::format("{}/build/mlp", at));
  double before = 0, after = 0, curvature = 0;
  REQUIRE(std::sscanf(trained.c_str(), "loss %lf -> %lf, v'Hv = %lf", &before, &after, &curvature) == 3);
  CHECK(after < before / 5);
  CHECK(curvature != 0);
  std::string const learned = shell(folder, fmt::format("{}/build/gpt", at));
  auto const losses = [&](char const* step) { return std::stod(learned.substr(learned.find(step) + std::string(step).size())); };
  CHECK(losses("step 0: loss ") > 1.8);
  CHECK(losses("step 299: loss ") < 0.15);  // ln 5/16: which period a row has
  CHECK(shell(folder, fmt::format("{}/build/operations", at)) == "both orders agree\n");
}

TEST_CASE_FIXTURE(InFolder, "the package says what is missing") {
  put(folder / "CMakeLists.txt",
      "cmake_minimum_required(VERSION 3.25)\nproject(p CXX)\nfind_package(heed)\nif(heed_FOUND)\n  "
      "message(FATAL_ERROR found)\nendif()\n");
  auto const at = folder.path().string();
  shell(folder, fmt::format("cmake --install {} --component library --prefix {}/prefix", build_folder(), at));
  CHECK(shell(folder,
              fmt::format("cmake -G Ninja -S {0} -B {0}/build -DCMAKE_PREFIX_PATH={0}/prefix -DCMAKE_DISABLE_FIND_PACKAGE_xsimd=ON", at))
            .find("xsimd (Debian: libxsimd-dev)") != std::string::npos);
}

TEST_CASE_FIXTURE(InFolder, "as a part of another project heed leaves that project's options alone") {
  write_project(folder);
  put(folder / "CMakeLists.txt",
      fmt::format("cmake_minimum_required(VERSION 3.25)\nproject(part CXX)\nadd_subdirectory({} heed)\n"
                  "add_executable(mlp mlp.cpp)\ntarget_link_libraries(mlp PRIVATE heed::nn)\n"
                  "get_directory_property(OPTIONS COMPILE_OPTIONS)\n"
                  "if(OPTIONS OR CMAKE_BUILD_TYPE OR CMAKE_CXX_COMPILER_LAUNCHER OR TARGET heed)\n"
                  "  message(FATAL_ERROR \"${{OPTIONS}} ${{CMAKE_BUILD_TYPE}} ${{CMAKE_CXX_COMPILER_LAUNCHER}}\")\nendif()\n",
                  build_info().source));
  shell(folder, fmt::format("cmake -G Ninja -S {0} -B {0}/build", folder.path().string()));
}

std::string replaced(std::string text, std::string const& from, std::string const& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

TEST_CASE_FIXTURE(InFolder, "the score of nn/README.md, beside the others: the suites that the page names pass") {
  auto const at = folder.path().string();
  put(folder / "laplace.cpp", block("cpp", 0, "nn/README.md"));
  // As the build compiles another score and links the program of each suite's group, but for these two.
  std::vector<std::string> const suites{"attention_gradients", "attention_properties"};
  CHECK(get("nn/README.md").find(fmt::format("./heed test {}", fmt::join(suites, " "))) != std::string::npos);
  for (auto const& suite : suites) {
    CAPTURE(suite);
    std::istringstream commands(shell(folder, fmt::format("ninja -C {} -t commands suite_{}", build_folder(), suite)));
    std::string compile, link, output;
    for (std::string line; std::getline(commands, line);) {
      std::smatch found;
      if (std::regex_search(line, found, std::regex(" -o ([^ ]*heed_formulas.dir[^ ]*) -c ([^ ]*)$")))
        compile = replaced(replaced(line, found[1], at + "/laplace.o"), found[2], at + "/laplace.cpp");
      if (std::regex_search(line, found, std::regex(" -o tests_[a-z]+_[0-9]+ "))) link = line, output = found[0];
    }
    REQUIRE(!compile.empty());
    REQUIRE(!link.empty());
    link = replaced(link, output, fmt::format(" {0}/laplace.o -o {0}/{1} ", at, suite));
    shell(folder, fmt::format("cd {} && {} && {}", build_folder(), compile, link));
    CHECK(shell(folder, fmt::format("{0}/{1} --test-suite={1} --success > {0}/passed && grep -c laplace {0}/passed", at, suite)) != "0\n");
  }
}

TEST_CASE_FIXTURE(InFolder, "a program of one's own has the score of nn/README.md beside heed's, and uses it from YAML") {
  auto const at = folder.path().string();
  put(folder / "laplace.cpp", block("cpp", 0, "nn/README.md"));
  put(folder / "CMakeLists.txt",
      replaced(block("cmake", 0, "nn/README.md"), "add_subdirectory(heed)", fmt::format("add_subdirectory({} heed)", build_info().source)));
  shell(folder, fmt::format("cmake -G Ninja -S {0} -B {0}/build", at));
  std::string const own = shell(folder, fmt::format("ninja -C {}/build -t commands mine", at));
  CHECK(own.find("/laplace.cpp") != own.npos);
  // The rest is what is built here already: the own step is compiled alone, and linked with the program's objects.
  std::istringstream commands(shell(folder, fmt::format("ninja -C {} -t commands heed", build_folder())));
  std::string link, compile;
  for (std::string line; std::getline(commands, line);)
    if (line.find(" -o heed ") != line.npos) link = line;
  std::istringstream owns(own);
  for (std::string line; std::getline(owns, line);)
    if (line.find("/laplace.cpp") != line.npos && line.find(" -c ") != line.npos) compile = line;
  REQUIRE((!link.empty() && !compile.empty()));
  shell(folder, fmt::format("cd {}/build && {}", at, compile));
  std::smatch object;
  REQUIRE(std::regex_search(compile, object, std::regex(" -o ([^ ]*laplace[^ ]*) ")));
  shell(folder, fmt::format("cd {} && {}", build_folder(),
                            replaced(link, " -o heed ", fmt::format(" {0}/build/{1} -o {0}/mine ", at, object[1].str()))));
  put(folder / "own.yaml",
      "name: own\ndata: {kind: copy, length: 2, vocabulary: 4, validation: 2}\nmodel: {kind: gpt, layers: 1, heads: 2, width: 8, "
      "context: 6, attention: {score: laplace}}\ntrain: {steps: 3, batch: 2, evaluate: {every: 3}}\n");
  CHECK(shell(folder, fmt::format("{0}/mine run {0}/own.yaml --output {0}/runs", at)).find("validation loss") != std::string::npos);
  CHECK(shell(folder, fmt::format("{}/mine list attention", at)).find("laplace") != std::string::npos);
}

TEST_CASE("the task of experiments/data.md is the one that stands in its file") {
  CHECK(get("experiments/data/tasks/sequences.cpp").find(block("cpp", 0, "experiments/data.md")) != std::string::npos);
}

TEST_SUITE_END();

}  // namespace

}  // namespace heed::test
