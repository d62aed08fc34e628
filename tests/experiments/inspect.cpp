#include "experiments/commands/inspect.hpp"

#include <sstream>

#include <doctest/doctest.h>

#include "experiments/commands/translator.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/tokenizers/characters.hpp"
#include "experiments/data/tokenizers/sentences.hpp"
#include "experiments/data/tokenizers/words.hpp"
#include "nn/files/checkpoint.hpp"
#include "nn/files/npz.hpp"
#include "nn/files/zip.hpp"
#include "tests/folder.hpp"
#include "tests/npz.hpp"

TEST_SUITE("inspect") {
  using namespace heed;
  using test::doubles;
  using test::read_npz;

  namespace {

  /// A run's folder with an untrained model, as training would leave it.
  struct Run {
    explicit Run(std::string const& tokenizer, std::string const& kind = "gpt", std::string const& more = "",
                 std::string const& source = "") {
      std::filesystem::create_directory(folder / "tiny");
      test::put(folder / "tiny/config.yaml",
                "name: tiny\ndtype: float64\ndata: {kind: text, path: gone.txt}\ninit: {std: 0.5}\nmodel: {kind: " + kind +
                    ", layers: 2, heads: 3, width: 12, context: 16" + more + "}\n");
      Experiment settings;
      fill(load(folder / "tiny/config.yaml"), settings);
      auto const size = (tokenizer.empty() ? 5 : restore_tokenizer(tokenizer)->vocabulary()) + (kind == "bert" ? 2 : 0);
      Parameters parameters(1, DType::float64, settings.init);
      Signature data = Signature::tokens(size);
      if (kind == "bert") data.set({.name = "inputs", .classes = size, .added = {"[MASK]", "[SEP]"}});  // it goes by its name
      auto const source_size = source.empty() ? size : restore_tokenizer(source)->vocabulary();
      if (kind == "transformer") data.set({.name = "source", .classes = source_size, .vocabulary = source.empty() ? "" : "source"});
      auto const model = make_model(settings.model, parameters, data);
      Checkpoint checkpoint;
      checkpoint.parameters = parameters.all();
      checkpoint.metadata = {{"data", data.text()}};
      if (!tokenizer.empty()) checkpoint.metadata["tokenizer"] = tokenizer;
      if (!source.empty()) checkpoint.metadata["source_tokenizer"] = source;
      save_checkpoint(folder / "tiny", checkpoint);
    }
    std::string operator()(std::string const& text, std::size_t width = 0, std::optional<std::string> const& target = {},
                           BeamSettings const& beam = {.width = 1, .length_penalty = 0.6}) const {
      InspectOptions options;
      options.run = folder / "tiny";
      options.text = text;
      options.width = width;
      options.target = target;
      options.beam = beam;
      std::ostringstream out;
      auto const code = inspect(options, out);
      CHECK(code == Exit::done);
      return out.str();
    }
    test::Folder folder;
  };

  std::string const english = word_tokenizer({"a", "dog", "the"})->json(), german = word_tokenizer({"der", "hund"})->json();
  std::string const letters = character_tokenizer("abcdé \n")->json();

  }  // namespace

  TEST_CASE("CRC-32") {
    CHECK(crc32("123456789") == 0xCBF43926U);  // the check value of its specification
    CHECK(crc32("") == 0);
  }

  TEST_CASE("an .npz holds what it was given, in numpy's words") {
    test::Folder const folder;
    write_npz(folder / "a.npz", {NpyArray::of("x", Tensor::of(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3})),
                                 NpyArray::of("y", Tensor::ones({4}, DType::float32)),
                                 NpyArray::of("n", Tensor::of(std::vector<std::int64_t>{-7}, {})), NpyArray::of("s", {"a", "éΣ", ""})});
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
    for (char const* part : {"\nlayer 0, head 0\n", "\nlayer 0, head 2\n", "\nlayer 1, head 2\n", "⏎", "  é"})
      CHECK(shown.find(part) != std::string::npos);
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
    auto const tokens = read_npz(words.folder / "tiny/attention.npz").at("tokens.npy").data;
    std::vector<std::int64_t> found(tokens.size() / 8);
    std::memcpy(found.data(), tokens.data(), tokens.size());
    CHECK(found == std::vector<std::int64_t>{0, 3, 4, 2, 4});
  }

  TEST_CASE("a source and a target: each attention has the labels of what looks and of what is looked at") {
    Run const run(english, "transformer", "", german);
    auto const shown = run("der hund fliegt", 0, "the dog");
    for (char const* part : {"\nlayer 0: encoder.blocks.0.attention, source attend to source, head 0\n",
                             "\nlayer 2: decoder.blocks.0.attention, inputs attend to inputs, head 2\n",
                             "\nlayer 5: decoder.blocks.1.cross_attention, inputs attend to source, head 1\n"})
      CHECK_MESSAGE(shown.find(part) != std::string::npos, part);
    auto const cross = shown.substr(shown.find("layer 3: decoder.blocks.0.cross_attention"));
    auto const head = cross.substr(cross.find('\n') + 1, cross.find("\n\n") - cross.find('\n'));
    std::istringstream lines(head);
    std::string line, first;
    std::getline(lines, line);
    for (char const* word : {"der", "hund", "<unk>", "<eos>"}) CHECK(line.find(word) != std::string::npos);
    std::vector<std::string> queries;
    while (lines >> first && std::getline(lines, line)) queries.push_back(first);
    CHECK(queries == std::vector<std::string>{"<bos>", "the", "dog"});

    auto const arrays = heed::read_npz(run.folder / "tiny/attention.npz");
    CHECK(arrays.at("source.labels").texts() == std::vector<std::string>{"der", "hund", "<unk>", "<eos>"});
    CHECK(arrays.at("inputs.labels").texts() == std::vector<std::string>{"<bos>", "the", "dog"});
    CHECK(arrays.at("source.tokens").tensor().shape() == Shape{4});
    CHECK(arrays.at("layer5.of").texts() == std::vector<std::string>{"decoder.blocks.1.cross_attention", "inputs", "source"});
    CHECK(arrays.at("layer5.weights").tensor().shape() == Shape{3, 3, 4});
    CHECK(arrays.size() == 16);
  }

  TEST_CASE("without a target the model's own is looked at, by greedy decoding or beam search") {
    Run const run(english, "transformer", "", german);
    auto const trained = open_run(run.folder / "tiny");
    Translator const translator(trained, "tiny");
    auto const source = translator.read("der hund");
    for (std::int64_t const width : {1, 3}) {
      BeamSettings const beam{.width = width, .length_penalty = 0.6};
      auto const own = translator.text(translator.translate(std::span(&source, 1), beam).front().front().tokens);
      auto const shown = run("der hund", 0, {}, beam);
      CHECK(shown.starts_with("the model writes: " + own + "\n"));
      CHECK(run("der hund", 0, own) == shown.substr(shown.find('\n') + 1));
    }
    CHECK_THROWS_WITH_AS(run(" "), "--text: holds no words", ConfigError);
    auto const learned = Run(english, "transformer", ", position: learned", german);
    CHECK_THROWS_WITH_AS(learned("der der der der der der der der der der der der der der der der"),
                         "--text: 16 words and a mark, but the model reads 16 tokens at most", ConfigError);
    CHECK_THROWS_WITH_AS(learned("der", 0, "a a a a a a a a a a a a a a a a"), doctest::Contains("--target: 16 words"), ConfigError);
  }

  TEST_CASE("a source without a text: tokens by number, and a target that is given") {
    Run const run("", "transformer");
    CHECK(run("0 4 2", 0, "1 3").find("layer 5: decoder.blocks.1.cross_attention") != std::string::npos);
    CHECK(heed::read_npz(run.folder / "tiny/attention.npz").at("source.labels").texts() == std::vector<std::string>{"0", "4", "2"});
    CHECK_THROWS_WITH_AS(run("0 4"), doctest::Contains("--target: is needed"), ConfigError);
    CHECK_THROWS_WITH_AS(run("0 4", 0, "9"), doctest::Contains("--target: '9' is not the number of a token, 0 … 4"), ConfigError);
    CHECK_THROWS_WITH_AS(run("0 4", 0, ""), "--target: holds no tokens", ConfigError);
  }

  TEST_CASE("data without a text: tokens by number") {
    Run const run("");
    CHECK(run("0 4 2").find("layer 1, head 2") != std::string::npos);
    CHECK_THROWS_WITH_AS(run("0 5"), "--text: '5' is not the number of a token, 0 … 4 (the run's data have no text)", ConfigError);
    CHECK_THROWS_AS(run("a"), ConfigError);
  }

  TEST_CASE("what cannot be read is refused") {
    Run const run(letters);
    CHECK_THROWS_WITH_AS(run(""), "--text: holds no tokens", ConfigError);
    CHECK_THROWS_WITH_AS(run("axe"), doctest::Contains("--text: character 'x'"), ConfigError);
    CHECK_THROWS_WITH_AS(run("aaaaaaaaaaaaaaaaa"), "--text: is 17 tokens long, but the model reads 16 at most", ConfigError);
    CHECK(Run(letters, "gpt", ", position: alibi")("aaaaaaaaaaaaaaaaa").size() > 100);
    CHECK_THROWS_WITH_AS(Run(letters, "gpt", ", position: alibi")(std::string(2049, 'a')),
                         "--text: is 2049 tokens long, but 2048 at most are inspected; give a part of it", ConfigError);
    std::string numbers;
    for (int i = 0; i < 2049; ++i) numbers += "1 ";
    Run const pairs("", "transformer", ", position: none");
    CHECK_THROWS_WITH_AS(pairs(numbers, 0, "1"), doctest::Contains("--text: is 2049 tokens long"), ConfigError);
    CHECK_THROWS_WITH_AS(pairs("1", 0, numbers), doctest::Contains("--target: is 2049 tokens long"), ConfigError);
    CHECK_THROWS_WITH_AS(Run(letters, "transformer")("abc"),
                         doctest::Contains("the source of its data has no marks of a beginning and an end"), ConfigError);
    CHECK_THROWS_WITH_AS(run("abc", 0, "b"), doctest::Contains("--target: "), ConfigError);
    CHECK_THROWS_WITH_AS(run("abc", 0, "b"), doctest::Contains("of kind gpt, reads no source"), ConfigError);
    InspectOptions nowhere;
    nowhere.run = "no/such/run";
    std::ostringstream out;
    CHECK_THROWS_AS(inspect(nowhere, out), ConfigError);
  }

  TEST_CASE("a picture of the data: what each word of its caption looked at, as the fields lie, and drawn") {
    test::Folder const folder;
    std::filesystem::create_directory(folder / "see");
    test::put(folder / "see/config.yaml",
              "name: see\ndtype: float64\ndata: {kind: glyphs, validation: 5}\ninit: {std: 0.5}\n"
              "model: {kind: captioner, channels: 8, width: 8, embedding: 8, context: 9, attention: bahdanau}\n");
    Experiment settings;
    fill(load(folder / "see/config.yaml"), settings);
    auto const data = open_dataset(settings.data, {});
    Parameters parameters(1, DType::float64, settings.init);
    auto const model = make_model(settings.model, parameters, data->signature());
    Checkpoint checkpoint;
    checkpoint.parameters = parameters.all();
    checkpoint.metadata = {{"data", data->signature().text()}, {"tokenizer", data->tokenizer()}};
    save_checkpoint(folder / "see", checkpoint);

    InspectOptions options;
    options.run = folder / "see";
    auto const said = [&] {
      std::ostringstream out;
      CHECK(inspect(options, out) == Exit::done);
      return out.str();
    };
    auto const refused = [&](char const* message) {
      std::ostringstream out;
      CHECK_THROWS_WITH_AS(inspect(options, out), doctest::Contains(message), ConfigError);
    };
    refused("--row: is needed: which of the held-out pictures, from 1");
    options.row = 6;
    refused("--row: there is no picture 6: the data hold out 5");
    options.row = 3;
    options.target = "red circle";
    options.picture = folder / "where.svg";
    auto const page = said();
    CHECK(page.find("the data say:     " + *data->reference(2)) != page.npos);
    CHECK(page.find("the model writes") == page.npos);
    for (char const* const word : {"\n  red ", "\n  circle ", "\n  <eos> "}) CHECK(page.find(word) != page.npos);
    CHECK(std::filesystem::file_size(folder / "where.svg") > 1000);
    auto const arrays = heed::read_npz(folder / "see/attention.npz");
    CHECK(arrays.at("image.pixels").tensor().to_vector() == data->validation(2, 1, 9)["image"].to_vector());
    CHECK(arrays.at("layer0.across").tensor().item() == 4);
    CHECK(arrays.at("layer0.of").texts() == std::vector<std::string>{"attention", "inputs", "image"});
    CHECK(arrays.at("layer0.weights").tensor().shape() == Shape{1, 3, 16});
    CHECK(arrays.at("inputs.labels").texts() == std::vector<std::string>{"<bos>", "red", "circle"});
    options.target.reset();
    CHECK(said().find("the model writes: ") != std::string::npos);
    options.picture = folder / "where.txt";
    refused("--picture: wants a file that ends in .svg, .pdf or .png");
    options.picture.clear();
    options.text = "red";
    refused("--text: ");
  }
}
