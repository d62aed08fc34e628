#include "experiments/commands/translate.hpp"

#include <fmt/ranges.h>
#include <sys/mman.h>

#include "experiments/commands/translator.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "experiments/report/alignment_figure.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/train/train.hpp"
#include "tests/engine.hpp"
#include "tests/experiments/parsed.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/untrained_run.hpp"

TEST_SUITE("translate") {
  using namespace heed;

  namespace {

  /// A run's folder with an untrained model that reads German words and writes English ones, as training would leave it.
  struct Run {
    explicit Run(std::string const& more = "", std::string const& kind = "transformer",
                 std::vector<std::string> const& english = {"a", "dog", "runs", "the", "walks"}) {
      auto const source = word_tokenizer({"der", "ein", "hund", "läuft"}), target = word_tokenizer(english);
      Signature data = Signature::tokens(target->vocabulary());
      data.set({.name = "source", .classes = source->vocabulary(), .vocabulary = "source"});
      test::save_untrained(folder,
                           "dtype: float64\ninit: {std: 0.7}\nmodel: {kind: " + kind + ", layers: 2, heads: 2, width: 12, tie: false" +
                               (more.find("context:") == more.npos ? ", context: 9" : "") + more + "}\n",
                           data, {{"tokenizer", target->json()}, {"source_tokenizer", source->json()}});
    }
    TranslateOptions options() const {
      TranslateOptions options;
      options.run = folder / "tiny";
      return options;
    }
    std::string operator()(std::string const& text) const { return (*this)(text, options()); }
    std::string operator()(std::string const& text, TranslateOptions const& options) const {
      std::istringstream in(text);
      std::ostringstream out;
      auto const code = translate(options, in, out);
      CHECK(code == Exit::done);
      return out.str();
    }
    test::Folder folder;
  };

  using test::lines_of;
  std::string const byte_order_mark = "\xEF\xBB\xBF";

  /// A text after which a read fails: memory of this process, behind which none is mapped.
  class CutOff {
   public:
    explicit CutOff(std::string const& text) : size_(text.size()), file_(::open("/proc/self/mem", O_RDONLY)) {
      auto const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
      REQUIRE(size_ % page == 0);
      memory_ = ::mmap(nullptr, size_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      REQUIRE(memory_ != MAP_FAILED);
      std::ranges::copy(text, static_cast<char*>(memory_));
      REQUIRE(::munmap(static_cast<char*>(memory_) + size_, page) == 0);
      REQUIRE(::lseek(file_, static_cast<off_t>(reinterpret_cast<std::uintptr_t>(memory_)), SEEK_SET) >= 0);
    }
    CutOff(CutOff const&) = delete;
    CutOff& operator=(CutOff const&) = delete;
    ~CutOff() {
      ::munmap(memory_, size_);
      ::close(file_);
    }
    std::function<void()> as_standard_input() const {
      return [file = file_] { ::dup2(file, STDIN_FILENO); };
    }

   private:
    std::size_t size_;
    int file_;
    void* memory_ = nullptr;
  };

  struct InRun {
    Run const run;
  };

  }  // namespace

  TEST_CASE_FIXTURE(InRun, "a read that fails is not the end of the text") {
    std::vector<std::string> const command{"translate", (run.folder / "tiny").string(), "--threads", "1"};
    std::string lines;
    while (lines.size() < 262144) lines += "ein hund\nder \n";
    lines.resize(262144);
    std::string const open_line = lines.substr(0, 65536 - 1) + "e";  // the failure is within a line
    CHECK(test::run_heed(command, [] { ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO); }).code == 0);
    for (auto const& text : {lines, open_line}) {
      CutOff const input(text);
      auto const outcome = test::run_heed(command, input.as_standard_input());
      CHECK(outcome.code == 3);
      auto const line = std::ranges::count(text, '\n') + 1;
      CHECK(outcome.errors == fmt::format("heed: standard input:{}: cannot be read: Input/output error\n", line));
    }
    auto const folder = run.folder.path().string();
    test::refuses(command, 3, {"standard input:1: cannot be read: "}, [folder] { ::dup2(::open(folder.c_str(), O_RDONLY), STDIN_FILENO); });
    test::refuses(command, 3, {"standard input:1: cannot be read: "}, [] { ::dup2(::open("/dev/null", O_WRONLY), STDIN_FILENO); });
    auto options = run.options();
    options.input = "/proc/self/mem";
    options.save = run.folder / "out";
    CHECK_THROWS_WITH_AS(run("", options), "/proc/self/mem:1: cannot be read: Input/output error", FileError);
    CHECK(!std::filesystem::exists(options.save));
  }

  TEST_CASE_FIXTURE(InRun, "a line becomes a line, in order, whatever stands beside it; empty ones stay empty") {
    std::vector<std::string> const sources{"der hund läuft", "", "ein", "der der der der hund", "  \t ", "ein fremder hund", "ein"};
    std::string all, one_by_one;
    for (auto const& source : sources) {
      all += source + "\n";
      auto const line = run(source + "\n");
      CHECK(lines_of(line).size() == 1);
      one_by_one += line;
    }
    CHECK(run(all) == one_by_one);
    auto const lines = lines_of(one_by_one);
    CHECK(lines[1].empty());
    CHECK(lines[4].empty());
    CHECK(lines[2] == lines[6]);
    CHECK(run("") == "");
    CHECK(run("ein") == lines[2] + "\n");  // no end of the last line
    CHECK(run(byte_order_mark + "ein\nein\n") == lines[2] + "\n" + lines[2] + "\n");
    CHECK(run(byte_order_mark + "\nein\n") == "\n" + lines[2] + "\n");
    CHECK(run("ein\r\nein\r\n") == lines[2] + "\n" + lines[2] + "\n");  // of Windows
    auto options = run.options();
    options.at_once = true;
    CHECK(run(all, options) == one_by_one);
  }

  TEST_CASE_FIXTURE(InRun, "the words are those that decoding gives, on any number of threads") {
    auto const trained = open_run(run.folder / "tiny");
    std::vector<Index> const source{4, 6, 7, Tokenizer::eos};
    Batch const batch{{"source", Tensor::of(source, {1, 4})}, {"source_lengths", Tensor::of(std::vector<Index>{4}, {1})}};
    auto const words = restore_tokenizer(trained.tokenizer);
    auto const best = greedy(*trained.model, batch, Tokenizer::bos, Tokenizer::eos, 9).front();
    CHECK(run("der hund läuft\n") == words->decode(best.tokens) + "\n");
    auto options = run.options();
    options.beam.width = 3;
    options.best = 2;
    options.scores = true;
    auto const hypotheses = beam(*trained.model, batch, Tokenizer::bos, Tokenizer::eos, 9, options.beam).front();
    std::string expected;
    for (std::size_t i = 0; i < 2; ++i)
      expected += fmt::format("2\t{:.4f}\t{}\n", hypotheses[i].score, words->decode(hypotheses[i].tokens));
    for (int const threads : {1, 2}) {
      Threads const with(threads);
      CHECK(run("\nder hund läuft\n", options) == expected);
    }
    options.best = 1;
    CHECK(run("\nder hund läuft\n", options) == "\n" + expected.substr(2, expected.find('\n') - 1));
  }

  TEST_CASE_FIXTURE(InRun, "of hypotheses that are the same words one is written") {
    auto options = run.options();
    options.beam.width = options.best = 9;
    options.tokens = 1;  // each of the vocabulary: three of its four marks are not written
    auto lines = lines_of(run("der hund\n", options));
    CHECK(lines.size() == 7);
    CHECK(std::ranges::count(lines, "1\t") == 1);
    options.tokens = 2;
    for (Index const best : {2, 5, 9}) {
      options.best = best;
      lines = lines_of(run("der hund\nein\n", options));
      CHECK(std::set(lines.begin(), lines.end()).size() == lines.size());
      CHECK(std::ssize(lines) <= 2 * best);
    }
  }

  TEST_CASE("words that a terminal would obey are shown to it as what cannot be printed, and left to files as they are") {
    std::vector<std::string> words;
    for (char const* const end : {"\x01", "\x1B[31m", "\x1B]0;x\x07", "\x7F", "\xC2\x9B\x32J"}) words.push_back(std::string("w") + end);
    Run const run("", "transformer", words);
    auto options = run.options();
    options.beam.width = options.best = 9;
    options.tokens = 1;
    auto const raw = run("der hund\n", options);
    for (auto const& word : words) CHECK(raw.find(word) != std::string::npos);
    options.printable = true;
    auto const shown = run("der hund\n", options);
    CHECK(lines_of(shown).size() == lines_of(raw).size());
    for (char const c : {'\x01', '\x07', '\x1B', '\x7F', '\x9B'}) CHECK(shown.find(c) == std::string::npos);
    CHECK(shown.find("w\uFFFD[31m") != std::string::npos);

    int const terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(terminal >= 0);
    REQUIRE(::grantpt(terminal) == 0);
    REQUIRE(::unlockpt(terminal) == 0);
    std::string const name = ::ptsname(terminal);
    test::put(run.folder / "in", "der hund\n");
    test::run_well({"translate", run.folder / "tiny", "--input", run.folder / "in", "--beam", "9", "--nbest", "9", "--tokens", "1"},
                   [name] { ::dup2(::open(name.c_str(), O_RDWR | O_NOCTTY), STDOUT_FILENO); });
    std::string printed(4096, '\0');
    printed.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(terminal, printed.data(), printed.size()))));
    ::close(terminal);
    CHECK(printed.find("w\uFFFD[31m") != std::string::npos);
    CHECK(printed.find('\x1B') == std::string::npos);
  }

  TEST_CASE_FIXTURE(InRun, "no more words than are asked for") {
    auto options = run.options();
    options.tokens = 2;
    for (auto const& line : lines_of(run("der hund läuft\nein hund\n", options))) CHECK(words_of(line).size() <= 2);
    Run const limited(", position: learned");  // to nine tokens
    options = limited.options();
    options.tokens = 1000;
    for (auto const& line : lines_of(limited("der hund läuft\nein hund\n", options))) CHECK(words_of(line).size() <= 9);
  }

  TEST_CASE("many lines are translated in parts, and each as by itself") {
    Run const run(", position: none");
    std::string text, expected;
    auto const hund = run("ein hund\n"), der = run("der\n");
    for (int i = 0; i < 1500; ++i) {
      text += i % 3 == 0 ? "der\n" : i % 3 == 1 ? "ein hund\n" : "\n";
      expected += i % 3 == 0 ? der : i % 3 == 1 ? hund : "\n";
    }
    CHECK(run(text) == expected);
  }

  TEST_CASE_FIXTURE(InRun, "from a file into a file, which appears whole") {
    test::put(run.folder / "in.de", "ein hund\n\nder\n");
    auto options = run.options();
    options.input = run.folder / "in.de";
    options.save = run.folder / "out.en";
    CHECK(run("not read", options).empty());
    CHECK(test::get(run.folder / "out.en") == run("ein hund\n\nder\n"));
    test::put(run.folder / "in.de", "ein hund\n\xFF\n");
    CHECK_THROWS_AS(run("", options), FileError);
    CHECK(lines_of(test::get(run.folder / "out.en")).size() == 3);  // as it was
  }

  TEST_CASE("texts that cannot be translated are told by their line") {
    Run const run(", position: learned");
    auto const refused = [&](std::string const& text) { return test::refusal<FileError>([&] { run(text); }); };
    CHECK(refused("ein\n\nein \xFF hund\n") == "standard input:3: not UTF-8 at byte 4 of the line");
    CHECK(refused("\xC3") == "standard input:1: not UTF-8 at byte 0 of the line");                // a character cut off
    CHECK(refused("ein \xED\xA0\x80\n") == "standard input:1: not UTF-8 at byte 4 of the line");  // half of a pair of UTF-16
    CHECK(refused("a\xC0\x80\n") == "standard input:1: not UTF-8 at byte 1 of the line");         // overlong
    CHECK(refused("der der der der der der der der\n").empty());
    CHECK(refused("ein\nder der der der der der der der der\n") ==
          "standard input:2: 9 words and <eos>, but the model reads at most 9 tokens");
    CHECK(refused(std::string("ein \0 hund\n", 11)).empty());  // a word like another
    CHECK(refused("<bos> <pad> <eos> <unk>\n").empty());       // words that no vocabulary has
    CHECK(refused(byte_order_mark + "ein\n").empty());
    CHECK_THROWS_WITH_AS(Run(", attention: {score: location}")("ein\nder der der der der der der der der\nein\n"),
                         "standard input:2: location: 10 keys, but it has learned scores for 9 places only", FileError);
    auto options = run.options();
    options.input = run.folder / "gone.de";
    CHECK_THROWS_WITH_AS(run("", options), doctest::Contains("gone.de: there is no such file"), FileError);
    options.input = run.folder.path();
    CHECK_THROWS_WITH_AS(run("", options), doctest::Contains("is no file that can be read"), FileError);
    options = run.options();
    options.save = run.folder / "no/such/folder.en";
    CHECK_THROWS_AS(run("ein\n", options), Error);
  }

  TEST_CASE("a line that is longer than any sentence is refused by its line, at once") {
    Run const run(", position: none");
    auto const words = [](std::size_t count) { return fmt::format("{}", fmt::join(std::vector<std::string>(count, "hund"), " ")); };
    auto const began = std::chrono::steady_clock::now();
    for (auto const count : {std::size_t{4097}, std::size_t{32000}, std::size_t{1000000}})
      CHECK_THROWS_WITH_AS(
          run("ein\n" + words(count) + "\nein\n"),
          fmt::format("standard input:2: {} words, but a line may have at most 4096; split it into sentences", count).c_str(), FileError);
    CHECK_THROWS_WITH_AS(run("ein\n\n" + std::string((1 << 24) + 1, 'x')), "standard input:3: the line has more than 16777216 bytes",
                         FileError);
    CHECK(lines_of(run(std::string(1 << 24, 'x') + "\nein\n")).size() == 2);
    CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(20));
    auto options = run.options();
    options.tokens = 1;
    CHECK(lines_of(run(words(4096) + "\n", options)).size() == 1);
    Run const trained_so(", position: none, context: 5000");
    options.run = trained_so.options().run;
    CHECK(lines_of(trained_so(words(4097) + "\n", options)).size() == 1);
  }

  TEST_CASE_FIXTURE(InRun, "runs and options that do not go together are refused before a line is read") {
    auto several = run.options(), picture = run.options(), nowhere = run.options();
    several.best = 3, picture.attention = "where.jpg", nowhere.run = "no/such/run";
    CHECK_THROWS_WITH_AS(run("\xFF", several), "--nbest: 3 hypotheses of a line need --beam 3 or more", ConfigError);
    CHECK_THROWS_WITH_AS(run("\xFF", picture), "--attention: wants a file that ends in .html, .svg, .pdf or .png, but found 'where.jpg'",
                         ConfigError);
    CHECK_THROWS_AS(run("ein\n", nowhere), ConfigError);
    CHECK_THROWS_WITH_AS(Run("", "gpt")("ein\n"),
                         doctest::Contains("its model, of kind gpt, does not translate; heed sample continues a text"), ConfigError);
    auto const checkpoint = run.folder / "tiny/checkpoint.safetensors";
    auto bytes = test::get(checkpoint);
    test::put(checkpoint, bytes.substr(0, bytes.size() - 9));
    CHECK_THROWS_AS(run("ein\n"), FileError);
  }

  TEST_CASE_FIXTURE(InRun, "where each word looked: its means over heads, a panel a layer") {
    auto const trained = open_run(run.folder / "tiny");
    Translator const translator(trained);
    auto const maps = record_attention_maps(*trained.model, translator.batch(translator.read("der hund"), {5, 6}),
                                            {translator.target_words(), translator.source_words()});
    auto const alignment = alignment_of(maps);
    CHECK(alignment.source == std::vector<std::string>{"der", "hund", "<eos>"});
    CHECK(alignment.target == std::vector<std::string>{"dog", "runs", "<eos>"});  // when each was written
    REQUIRE(alignment.layers.size() == 2);
    Tensor const weights = maps.layers[5].weights;
    CHECK(maps.layers[5].layer == "decoder.blocks.1.cross_attention");
    for (Index i = 0; i < 9; ++i) CHECK(alignment.layers[1].weights.at(i) == doctest::Approx((weights.at(i) + weights.at(9 + i)) / 2));
    auto const drawn = draw({alignment_figure(alignment)}, Beside::png);
    if (!drawn) return;
    test::check_holds(drawn->front().svg, {">hund<", "layer 2 of 2"});
    CHECK(drawn->front().svg.find("<image") == std::string::npos);  // sharp at any size
    CHECK(drawn->front().png.starts_with("\x89PNG"));

    auto options = run.options();
    for (std::string const kind : {"html", "svg", "pdf", "png"}) {
      options.attention = run.folder / ("where." + kind);
      CHECK(run("der hund\n\nein\n", options) == run("der hund\n\nein\n"));
      if (kind != "html") {
        for (int const line : {1, 2, 3}) CHECK(std::filesystem::exists(run.folder / fmt::format("where-{}.{}", line, kind)) == (line != 2));
        run("der hund\n", options);
        CHECK(std::filesystem::exists(options.attention));
        continue;
      }
      auto const page = test::get(options.attention);
      test::check_holds(page, {"Line 1: ", "Line 3: "});
      CHECK(page.find("<script") == std::string::npos);
    }
    run("", options);  // nothing to draw
  }

  TEST_CASE_FIXTURE(test::InFolder, "a trained model copies, through the program, and attends to what it copies") {
    test::trained(folder, "copy",
                  "data: {kind: pairs, task: {kind: copy, length: 4, vocabulary: 6}}\n"
                  "model: {kind: transformer, layers: 1, heads: 4, width: 64, context: 8, norm: {place: pre}}\n"
                  "train: {steps: 500, batch: 32, optimizer: {kind: adamw, lr: 3.0e-3, betas: [0.9, 0.98]}, clip: 1.0, "
                  "schedule: {kind: cosine, warmup: 50}, evaluate: {every: 500}}\n",
                  {"--threads", "1"});
    std::string const output = folder.path(), text = "1 2 3 4\n\n6 6 1 5\n4 3 4 1\n";
    test::put(folder / "in", text);
    auto const outcome = test::run_well({"translate", "copy", "--output", output, "--input", folder / "in", "--threads", "1"});
    CHECK(outcome.errors.empty());
    CHECK(outcome.output == text);
  }

  TEST_CASE("translations: a run, where lines come from and go to, and how they are searched for") {
    using test::parsed, test::read, test::refused, test::Words;
    auto const line = parsed({"translate", "runs/a",           "--input",   "in.de",    "--save", "out.en",    "--beam",
                              "5",         "--length-penalty", "1.5",       "--tokens", "40",     "--nbest",   "2",
                              "--scores",  "--attention",      "where.pdf", "--output", "o",      "--threads", "1"});
    CHECK(line.command == "translate");
    auto const options = read<TranslateOptions>(line);
    CHECK((options.run == "runs/a" && options.input == "in.de" && options.save == "out.en"));
    CHECK((options.beam.width == 5 && options.beam.length_penalty == 1.5));
    CHECK((options.tokens == 40 && options.best == 2 && options.scores));
    CHECK((options.attention == "where.pdf" && options.folders.output == "o"));
    CHECK(line.everywhere.threads == 1);
    auto const usual = read<TranslateOptions>(Words{"translate", "r"});
    CHECK(usual.beam.width == 1);
    CHECK(usual.tokens == 0);
    CHECK(!usual.scores);
    CHECK(refused({"translate"}) == "translate: RUN is required (see heed --help)");
    CHECK(refused({"translate", "r", "--beam", "0"}).find("--beam: wants an integer") == 0);
    CHECK(refused({"translate", "r", "--length-penalty", "x"}).find("--length-penalty: wants") == 0);
    CHECK(refused({"translate", "r", "in.de"}) == "in.de: is one argument too many (see heed translate --help)");
    CHECK(refused({"translate", "r", "--beem", "5"}) == "--beem: there is no such option; did you mean '--beam'?");
  }
}
