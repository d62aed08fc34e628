#include "experiments/commands/inspect.hpp"

#include "experiments/data/tokenizers/tokenizers.hpp"
#include "tests/experiments/inspected_run.hpp"
#include "tests/experiments/said.hpp"
#include "tests/npz.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("inspect") {
  using namespace heed;
  using test::doubles;
  using Run = test::InspectedRun;
  using test::read_npz;

  namespace {

  std::string const letters = character_tokenizer("abcdé \n")->json();

  }  // namespace

  TEST_CASE("weights that cannot be saved are shown all the same, and the way out is named") {
    Run const run(letters);
    std::filesystem::create_directory(run.folder / "tiny/attention.npz");
    std::ostringstream out;
    CHECK(test::refusal<Error>([&] { inspect(run.options("abc"), out); }).ends_with("(--save FILE.npz writes the weights elsewhere)"));
    CHECK(out.str().find("layer 1, head 2") != std::string::npos);
  }

  TEST_CASE("CRC-32") {
    CHECK(crc32("123456789") == 0xCBF43926U);  // the check value of its specification
    CHECK(crc32("") == 0);
  }

  TEST_CASE_FIXTURE(test::InFolder, "an .npz holds what it was given, in numpy's words") {
    write_npz(folder / "a.npz", {NpyArray::of("x", Tensor::of(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3})),
                                 NpyArray::of("y", Tensor::ones({4}, DType::float32)),
                                 NpyArray::of("n", Tensor::of(std::vector<Index>{-7}, {})), NpyArray::of("s", {"a", "éΣ", ""})});
    auto const arrays = read_npz(folder / "a.npz");
    CHECK(arrays.size() == 4);
    CHECK(arrays.at("x.npy").header == "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }");
    CHECK(doubles(arrays.at("x.npy")) == std::vector<double>{1, 2, 3, 4, 5, 6});
    CHECK(arrays.at("y.npy").header == "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }");
    CHECK(arrays.at("y.npy").data.size() == 16);
    CHECK(arrays.at("n.npy").header == "{'descr': '<i8', 'fortran_order': False, 'shape': (), }");
    CHECK(arrays.at("n.npy").data == "\xF9\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
    CHECK(arrays.at("s.npy").header == "{'descr': '<U2', 'fortran_order': False, 'shape': (3,), }");
    CHECK(arrays.at("s.npy").data == std::string("a\0\0\0\0\0\0\0\xE9\0\0\0\xA3\x03\0\0\0\0\0\0\0\0\0\0", 24));
  }

  TEST_CASE("a table of hundredths, in stripes where the terminal is narrow") {
    Tensor const weights = Tensor::of(std::vector<double>{1, 0, 0, 0.25, 0.75, 0, 0.004, 0.336, 0.66}, {3, 3});
    CHECK(attention_table(weights, {"the", "cat", "is"}, {"the", "cat", "sitting"}, 0) ==
          "         the    cat sitti…\n"
          "  the    100      ·      ·\n"
          "  cat     25     75      ·\n"
          "  is       0     34     66\n");
    CHECK(attention_table(weights, {"a", "b", "c"}, {"a", "b", "c"}, 11) ==
          "      a   b\n"
          "  a 100   ·\n"
          "  b  25  75\n"
          "  c   0  34\n"
          "\n"
          "      c\n"
          "  a   ·\n"
          "  b   ·\n"
          "  c  66\n");
  }

  TEST_CASE("every layer and head is shown and saved: rows sum to one, nothing looks ahead") {
    Run const run(letters);
    auto const shown = run("bad\né");
    test::check_holds(shown, {"\nlayer 0, head 0\n", "\nlayer 0, head 2\n", "\nlayer 1, head 2\n", "⏎", "  é"});
    CHECK(shown.find("layer 2") == std::string::npos);
    auto const arrays = read_npz(run.folder / "tiny/attention.npz");
    CHECK(arrays.size() == 4);
    CHECK(arrays.at("tokens.npy").header == "{'descr': '<i8', 'fortran_order': False, 'shape': (5,), }");
    CHECK(arrays.at("labels.npy").header == "{'descr': '<U1', 'fortran_order': False, 'shape': (5,), }");
    for (std::string const layer : {"layer0.weights.npy", "layer1.weights.npy"}) {
      CHECK(arrays.at(layer).header == "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 5, 5), }");
      auto const weights = doubles(arrays.at(layer));
      for (std::size_t row = 0; row < 15; ++row) {
        double sum = 0;
        for (std::size_t j = 0; j < 5; ++j) {
          sum += weights[row * 5 + j];
          if (j > row % 5) CHECK(weights[row * 5 + j] == 0);
        }
        CHECK(sum == doctest::Approx(1).epsilon(1e-12));
      }
    }
  }

  TEST_CASE("a masked model looks both ways and knows [MASK], also between words") {
    auto const shown = Run(letters, "bert")("a[MASK]c");
    CHECK(shown.find("[MASK]") != std::string::npos);
    CHECK(shown.find("·\n") == std::string::npos);
    Run const words(sentence_tokenizer({"cat", "sees", "the"})->json(), "bert");
    words("the [MASK] sees [MASK]");
    CHECK(heed::read_npz(words.folder / "tiny/attention.npz").at("tokens").tensor().to_vector() == std::vector<double>{0, 3, 4, 2, 4});
  }

  TEST_CASE("data without a text: tokens by number") {
    Run const run("");
    CHECK(run("0 4 2").find("layer 1, head 2") != std::string::npos);
    CHECK_THROWS_WITH_AS(run("0 5"), "--text: '5' is not the number of a token, 0 … 4 (the run's data have no text)", ConfigError);
    CHECK_THROWS_AS(run("a"), ConfigError);
  }

  TEST_CASE("the loss without each head, and with its outputs from another text") {
    Run const run(letters, "gpt", ", layer_types: [deltanet, scaled], position: none");
    auto const shown = [&](std::string const& text, std::optional<std::string> const& from) {
      auto options = run.options(text);
      options.from = from, options.heads = !from;
      return Run::shown(options);
    };
    test::check_holds(shown("bad", {}),
                      {"loss ", " nat a token; loss without a head", "blocks.0.attention ", "blocks.1.attention ", "head 2"});
    CHECK(shown("bad", "bad").find("+0.0000  +0.0000  +0.0000\n") != std::string::npos);  // its own outputs change nothing
    CHECK(shown("bad", "bcd").find("+0.0000  +0.0000  +0.0000\n") == std::string::npos);
    test::check_holds(test::refusal<ConfigError>([&] { shown("bad", "ba"); }), {"--from: is 2 tokens long, --text 3"});
    test::check_holds(test::refusal<ConfigError>([&] { shown("b", {}); }), {"--text: holds one token"});
    InspectOptions both;
    both.heads = true, both.from = "bad";
    CHECK_THROWS_WITH_AS(Run::shown(both), doctest::Contains("--heads: "), ConfigError);
    both.from.reset(), both.save = "maps.npz";
    CHECK_THROWS_WITH_AS(Run::shown(both), doctest::Contains("--save: "), ConfigError);
  }

  TEST_CASE("what cannot be read is refused") {
    Run const run(letters);
    CHECK_THROWS_WITH_AS(run(""), "--text: holds no tokens", ConfigError);
    CHECK_THROWS_WITH_AS(run("axe"), doctest::Contains("--text: character 'x'"), ConfigError);
    CHECK_THROWS_WITH_AS(run("aaaaaaaaaaaaaaaaa"), "--text: is 17 tokens long, but the model reads at most 16", ConfigError);
    CHECK(Run(letters, "gpt", ", position: alibi")("aaaaaaaaaaaaaaaaa").size() > 100);
    CHECK_THROWS_WITH_AS(Run(letters, "gpt", ", position: alibi")(std::string(2049, 'a')),
                         "--text: is 2049 tokens long, but 2048 at most are inspected; give a part of it", ConfigError);
    auto const targeted = test::refusal<ConfigError>([&] { run("abc", "b"); });
    test::check_holds(targeted, {"--target: ", "of kind gpt, has no source"});
    InspectOptions nowhere;
    nowhere.run = "no/such/run";
    CHECK_THROWS_AS(Run::shown(nowhere), ConfigError);
  }

  TEST_CASE("a picture of a text's maps: all heads or one, as a page, for print, or as an image") {
    Run const run("");
    auto options = run.options("1 2 3 4");
    for (std::string const kind : {".html", ".svg", ".pdf", ".png"})
      for (bool const one : {false, true}) {
        options.picture = run.folder / ("maps" + kind);
        options.head.reset();
        if (one) options.head = std::pair<Index, Index>(1, 2);
        Run::shown(options);
        auto const drawn = test::get(options.picture);
        CHECK(drawn.size() > 1000);
        if (kind == ".pdf" || kind == ".png") continue;
        test::check_holds(drawn, {">queries<", ">keys<", ">weight<"});
        for (Index layer = 0; layer < 2; ++layer)
          for (Index head = 0; head < 3; ++head) {
            CAPTURE(fmt::format("layer {}, head {}", layer, head));
            CHECK((drawn.find(fmt::format("layer {}, head {}", layer, head)) != drawn.npos) == (!one || (layer == 1 && head == 2)));
          }
      }
    options.head = std::pair<Index, Index>(2, 0);
    CHECK_THROWS_WITH_AS(Run::shown(options), "--head: there is no layer 2: there are 2, from 0 on", ConfigError);
    options.head = std::pair<Index, Index>(0, 3);
    CHECK_THROWS_WITH_AS(Run::shown(options), "--head: layer 0 has no head 3: there are 3, from 0 on", ConfigError);
  }
}
