#include <fmt/ranges.h>

#include "experiments/commands/commands.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/data/view.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/bleu.hpp"
#include "experiments/metric/lengths.hpp"
#include "tests/engine.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/refusal.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("evaluate") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  using test::trained;
  using Lines = std::vector<std::string>;

  /// Lines of one to seven of five words.
  Lines random_lines(std::size_t count, std::uint64_t seed) {
    Stream const draws(seed, "lines");
    Lines lines;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string line;
      for (std::uint64_t word = 0; word <= draws.child(i).below(0, 7); ++word)
        line += fmt::format("{}{}", word > 0 ? " " : "", std::string_view("abcde")[draws.child(i).below(1 + word, 5)]);
      lines.push_back(line);
    }
    return lines;
  }

  void put_lines(fs::path const& path, Lines const& lines) { test::put(path, fmt::format("{}\n", fmt::join(lines, "\n"))); }

  Lines lines_of(fs::path const& path) { return test::lines_of(test::get(path)); }

  EvaluateOptions options_of(fs::path const& run, fs::path const& data = {}) {
    EvaluateOptions options;
    options.run = run;
    options.folders.data = data;
    options.quiet = true;
    return options;
  }

  /// A transformer that has learned, as good as, to say its source again: texts of 20 held-out lines, 60 to test on. Of these every sixth
  /// wants another first word, so that some are wrong whatever was learned.
  struct Copies {
    Copies() {
      for (auto const& [name, count] : {std::pair("train", 400), std::pair("held", 20), std::pair("test", 60)}) {
        auto lines = random_lines(static_cast<std::size_t>(count), static_cast<std::uint64_t>(count));
        put_lines(folder / fmt::format("{}.x", name), lines);
        for (std::size_t i = 0; count == 60 && i < lines.size(); i += 6) lines[i].front() = lines[i].front() == 'a' ? 'b' : 'a';
        put_lines(folder / fmt::format("{}.y", name), lines);
      }
      trained(folder, "copies", R"(
data: {kind: parallel, train: train, validation: held, test: test, from: x, to: y, least_count: 1}
model: {kind: transformer, layers: 2, heads: 4, width: 48, context: 12, norm: {place: pre}}
train: {steps: 600, batch: 32, optimizer: {kind: adamw, lr: 1.5e-3}, clip: 1.0, ema: 0.9,
  evaluate: {every: 600, batch: 8, metrics: [decoded.exact, bleu]}}
)");
    }

    EvaluateOptions options(std::string const& split = "test") const {
      auto result = options_of(folder / "copies", folder.path());
      result.split = split;
      return result;
    }
    test::Folder folder;
  };

  Copies const& copies() {
    static Copies const trained;
    return trained;
  }

  void evaluated(EvaluateOptions const& options) {
    std::ostringstream out;
    auto const code = evaluate(options, out);
    REQUIRE(code == Exit::done);
  }

  test::OrderedJson results(EvaluateOptions const& options) {
    evaluated(options);
    auto const* const weights = options.weights == "last" ? "-last" : "";
    return read_json(options.run / fmt::format("evaluation-{}{}", options.split, weights) / "results.json");
  }

  /// The same numbers, but for rounding.
  void check_close(test::OrderedJson const& a, test::OrderedJson const& b) {
    REQUIRE(a.size() == b.size());
    for (auto const& item : a.items()) {
      auto const& name = item.key();
      CAPTURE(name);
      CHECK(number_of(item.value()) == doctest::Approx(number_of(b.at(name))).epsilon(1e-5));
    }
  }

  std::string refusal(EvaluateOptions const& options) {
    std::ostringstream out;
    return test::refusal<ConfigError>([&] { evaluate(options, out); });
  }

  }  // namespace

  TEST_CASE("decoded targets: written down, as right as they are said to be, and their BLEU that of the texts" *
            test::needs("translation")) {
    auto const options = copies().options();
    auto const found = results(options);
    auto const folder = options.run / "evaluation-test";
    auto const said = lines_of(folder / "decoded.txt"), wanted = lines_of(copies().folder / "test.y");
    REQUIRE(said.size() == wanted.size());
    double const right = std::inner_product(said.begin(), said.end(), wanted.begin(), 0.0, std::plus(), std::equal_to());
    auto const& metrics = found.at("metrics");
    CHECK(metrics.at("decoded.exact").get<double>() == doctest::Approx(right / 60));
    CHECK(right / 60 > 0.5);
    CHECK(metrics.at("exact") == metrics.at("decoded.exact"));  // each word right after right ones, or all of them in a row
    CHECK(metrics.at("bleu").get<double>() == doctest::Approx(corpus_bleu(said, wanted, {.tokens = BleuSettings::Tokens::words})));
    CHECK(metrics.at("bleu.13a").get<double>() == doctest::Approx(corpus_bleu(said, wanted)));
    CHECK(found.at("rows") == 60);
    CHECK(found.at("weights") == "averaged");
    CHECK(found.at("decoding").at("beam") == 1);
    CHECK(fs::exists(folder / "results.csv"));
    bool const draws = std::system("gnuplot --version > /dev/null 2>&1") == 0;
    for (char const* file : {"metrics_by_length.svg", "metrics_by_length.pdf"}) CHECK(fs::exists(folder / file) == draws);
  }

  TEST_CASE("groups of a length are all rows once, and their means the mean" * test::needs("translation")) {
    auto const found = results(copies().options());
    double rows = 0, right = 0, longest = 0;
    CHECK(found.at("length_of") == "source");
    CHECK(found.at("by_length").size() > 2);
    for (auto const& part : found.at("by_length")) {
      CHECK(part.at("shortest").get<double>() > longest);
      longest = part.at("longest").get<double>();
      rows += part.at("rows").get<double>();
      right += part.at("rows").get<double>() * part.at("metrics").at("exact").get<double>();
    }
    CHECK(rows == 60);
    double const exact = found.at("metrics").at("exact").get<double>();
    CHECK(right / 60 == doctest::Approx(exact));
    // Of a share over independent rows the standard error is about √(p(1 − p)/n).
    double const error = found.at("standard_errors").at("exact").get<double>(), binomial = std::sqrt(exact * (1 - exact) / 60);
    CHECK(error > binomial / 2.5);
    CHECK(error < binomial * 2.5);
    auto const table = parse_csv(test::get(copies().folder / "copies/evaluation-test/results.csv"));
    CHECK(table[0] == Lines{"metric", "unit", "length", "shortest", "longest", "rows", "value", "standard_error"});
    CHECK(table[1][0] == "loss");
    CHECK(table[1][2] == "all");
    CHECK(table.size() == 1 + found.at("metrics").size() * (1 + found.at("by_length").size()));
  }

  TEST_CASE("rows at once and threads change nothing but rounding" * test::needs("translation")) {
    auto options = copies().options();
    auto const usual = results(options);
    auto const said = test::get(options.run / "evaluation-test/decoded.txt");
    for (int const threads : {1, 2})
      for (Index const batch : {1, 7, 100}) {
        INFO("threads ", threads, ", batch ", batch);
        Threads const count(threads);
        options.batch = batch;
        auto const found = results(options);
        check_close(found.at("metrics"), usual.at("metrics"));
        check_close(found.at("standard_errors"), usual.at("standard_errors"));
        for (std::size_t i = 0; i < usual.at("by_length").size(); ++i)
          check_close(found.at("by_length")[i].at("metrics"), usual.at("by_length")[i].at("metrics"));
        CHECK(test::get(options.run / "evaluation-test/decoded.txt") == said);
      }
  }

  TEST_CASE("the metrics of a run's last step, of its averaged weights and of its last ones" * test::needs("translation")) {
    auto options = copies().options("validation");
    auto const history = read_history(copies().folder / "copies");
    auto const last = [&](std::string const& name) { return history.at(name).back().second; };
    for (auto const& [weights, prefix] : {std::pair("average", "validation.ema."), std::pair("last", "validation.")}) {
      options.weights = weights;
      CAPTURE(options.weights);
      auto const found = results(options).at("metrics");
      for (char const* name : {"loss", "accuracy", "exact", "decoded.exact", "bleu"}) {
        CAPTURE(name);
        CHECK(found.at(name).get<double>() == doctest::Approx(last(std::string(prefix) + name)).epsilon(1e-5));
      }
    }
    CHECK(last("validation.loss") != last("validation.ema.loss"));
  }

  TEST_CASE("beams have a folder of their own, and what is asked for is all there is" * test::needs("translation")) {
    auto options = copies().options();
    options.search = {.width = 3, .length_penalty = 1};
    options.metrics = {{"bleu", "loss"}};
    evaluated(options);
    auto const found = read_json(options.run / "evaluation-test-beam3-penalty1-only-loss+bleu/results.json");
    CHECK(found.at("decoding").dump() == R"({"beam":3,"length_penalty":1.0})");
    CHECK(found.at("metrics").size() == 2);
    options.metrics = {{"loss"}};
    options.save = copies().folder / "loss.csv";
    evaluated(options);
    CHECK(test::get(options.save).starts_with("metric,unit,length,shortest,longest,rows,value,standard_error\nloss,nat,all,"));
    options.save = copies().folder / "loss.json";
    evaluated(options);
    CHECK(!read_json(options.save).contains("decoding"));
    options.save.clear();
    options.run = options.run / "checkpoint.safetensors";
    evaluated(options);
    CHECK(read_json(copies().folder / "copies/evaluation-test-only-loss/results.json").at("metrics").size() == 1);
  }

  TEST_CASE("an evaluation whose figure cannot be drawn is kept without it, and that is said" * test::needs("translation")) {
    test::Folder const folder;
    test::put(folder / "gnuplot", "#!/bin/sh\necho it is broken >&2\nexit 1\n");
    fs::permissions(folder / "gnuplot", fs::perms::owner_all);
    auto const path = folder.path().string();
    fs::remove_all(copies().folder / "copies/evaluation-test");
    auto const outcome =
        test::run_heed({"evaluate", (copies().folder / "copies").string(), "--split", "test", "--data", copies().folder.path().string()},
                       [&] { ::setenv("PATH", path.c_str(), 1); });
    test::check_ends(outcome, 0, {"heed: the evaluation has no figure: "});
    CHECK(fs::exists(copies().folder / "copies/evaluation-test/results.csv"));
    CHECK_FALSE(fs::exists(copies().folder / "copies/evaluation-test/metrics_by_length.svg"));
  }

  TEST_CASE_FIXTURE(test::InFolder, "known alignments of pairs are asked for by length, or as a whole" * test::needs("translation")) {
    auto const run = trained(folder, "short",
                             "data: {kind: pairs, task: {kind: copy, length: 4}, validation: 30}\n"
                             "model: {kind: transformer, layers: 2, heads: 2, width: 8, context: 8}\n"
                             "train: {steps: 2, batch: 4, evaluate: {metrics: [alignment_error, 'alignment_error.layer*']}}\n");
    auto const found = results(options_of(run));
    CHECK(!found.contains("by_length"));
    auto const history = read_history(run);
    for (char const* name : {"alignment_error", "alignment_error.layer0", "alignment_error.layer1"})
      CHECK(found.at("metrics").at(name).get<double>() == doctest::Approx(history.at(std::string("validation.") + name).back().second));
  }

  TEST_CASE_FIXTURE(test::InFolder, "runs of other kinds: what applies to them, as they recorded it") {
    std::string const train = "train: {steps: 3, batch: 4, evaluate: {every: 3, batch: 7}}\n";
    test::put(folder / "text.txt", std::string(400, 'a') + std::string(300, 'b') + "\n");
    struct Case {
      std::string name, data, model;
      bool by_length;
    };
    for (Case const& each : std::initializer_list<Case>{
             {"text", "text, path: text.txt, tokenizer: char, validation: 0.2", "gpt, layers: 1, heads: 1, context: 9", false},
             {"sentences", "grammar, validation: 60", "gpt, layers: 1, heads: 1, context: 41", true},
             {"masked", "grammar, validation: 60", "bert, layers: 1, heads: 1, context: 41", true},
             {"task", "copy, length: 3, validation: 20", "gpt, layers: 1, heads: 1, context: 6", false},
             {"single", "recall, pairs: 2, keys: 4, values: 4, queries: 1, validation: 20", "single_attention, pairs: 2, keys: 4",
              false}}) {
      CAPTURE(each.name);
      auto const run =
          trained(folder, each.name, fmt::format("data: {{kind: {}}}\nmodel: {{kind: {}, width: 8}}\n{}", each.data, each.model, train));
      auto const found = results(options_of(run, folder.path()));
      for (auto const& of_name : read_history(run)) {
        auto const& name = of_name.first;
        std::string const prefix = "validation.";
        if (!name.starts_with(prefix) || name == "validation.excess") continue;
        CAPTURE(name);
        CHECK(number_of(found.at("metrics").at(name.substr(prefix.size()))) == doctest::Approx(of_name.second.back().second).epsilon(1e-5));
      }
      CHECK(found.at("metrics").contains("perplexity"));
      CHECK(!found.at("metrics").contains("bleu"));
      CHECK(!found.contains("decoding"));
      CHECK(found.contains("by_length") == each.by_length);
      CHECK(!fs::exists(run / "evaluation-validation/decoded.txt"));
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "what cannot be evaluated is refused in a line that says why" * test::needs("translation")) {
    auto options = copies().options();
    options.metrics = {{"blue"}};
    CHECK(refusal(options).starts_with("--metrics: there is no metric 'blue'; did you mean 'bleu'?"));
    options.metrics = {{"alignment_error"}};
    CHECK(refusal(options).starts_with("--metrics: there is no alignment_error of this run: the data have no alignment of target words"));
    options = copies().options();
    options.save = "table.txt";
    CHECK(refusal(options) == "--save: wants a file that ends in .csv or .json, but found 'table.txt'");
    test::check_holds(refusal(options_of(copies().folder / "copy")), {"there is no such run"});

    auto const damaged = folder / "copies";
    fs::copy(copies().folder / "copies", damaged, fs::copy_options::recursive);
    auto const bytes = test::get(damaged / "checkpoint.safetensors");
    test::put(damaged / "checkpoint.safetensors", bytes.substr(0, bytes.size() / 2));
    Lines const command{"evaluate", damaged.string(), "--data", copies().folder.path().string()},
        elsewhere{"evaluate", damaged.string(), "--data", folder.path().string(), "--weights", "last"};
    test::refuses(command, 3, {"checkpoint.safetensors"});
    test::put(damaged / "checkpoint.safetensors", bytes);
    fs::remove(damaged / "state-600.safetensors");
    test::refuses(command, 3, {"state-600.safetensors"});
    CHECK(test::run_heed(test::joined(command, {"--weights", "last", "--quiet"})).code == 0);
    test::refuses(test::joined(command, {"--split", "tset"}), 2, {"--split", "did you mean 'test'?"});
    test::refuses(test::joined(command, {"--beam", "0"}), 2, {"--beam"});
    test::refuses(elsewhere, 3, {"train.x", "--data names"});
    put_lines(folder / "train.x", {"a b f"}), put_lines(folder / "train.y", {"a b f"});
    for (char const* name : {"held.x", "held.y", "test.x", "test.y"}) put_lines(folder / name, {"a b"});
    test::refuses(elsewhere, 3, {"was trained on other data"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "a run without a part to test on, and one without an average") {
    std::string const run = trained(folder, "short",
                                    "data: {kind: copy, length: 3, validation: 20}\ntrain: {steps: 1, batch: 4}\n"
                                    "model: {kind: gpt, layers: 1, heads: 1, width: 8, context: 6}\n");
    test::refuses({"evaluate", run, "--split", "test"}, 2, {"--split", "no test part"});
    test::refuses({"evaluate", run, "--weights", "average"}, 2, {"--weights", "train.ema"});
    test::check_holds(test::run_heed({"evaluate", run}).output, {"accuracy", "saved in " + run + "/evaluation-validation\n"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "metrics of a training: unknown and inapplicable ones are refused with their place") {
    auto const checked = [&](std::string const& metrics, Lines const& more = {}) {
      auto const file = (folder / "short.yaml").string();
      test::put(file,
                "name: short\ndata: {kind: copy, length: 3}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8, context: 6}\n"
                "train:\n  steps: 1\n  evaluate:\n    metrics: " +
                    metrics + "\n");
      return test::run_heed(test::joined({"check", file}, more));
    };
    test::check_refused(checked("[perplexity, blue]"), 2, {":7:27: ", "did you mean 'bleu'?"});
    test::check_refused(checked("[perplexity, bleu]"), 2,
                        {":7:27: ", "train.evaluate.metrics: there is no bleu here: the data give no source"});
    CHECK(checked("[perplexity, exact]").code == 0);
    test::check_refused(checked("[]", {"train.evaluate.metrics=[alignment_error]"}), 2,
                        {"train.evaluate.metrics", "the data give no source"});
  }

  TEST_CASE("shortest and longest are those of the rows, in whatever order they come") {
    for (Index const characters : {100, 128, 201}) {  // windows of 16, the last of which may be shorter
      std::string text;
      for (Index i = 0; i < 2 * characters; ++i) text += static_cast<char>('a' + i % 7);
      test::Folder const folder;
      test::put(folder / "text.txt", text);
      test::put(folder / "text.yaml",
                "name: text\ndata: {kind: text, path: text.txt, validation: 0.5}\ntrain: {steps: 0, batch: 3}\n"
                "model: {kind: gpt, layers: 1, heads: 1, width: 4, context: 16}\n");
      LoadedExperiment const loaded = load_experiment(folder / "text.yaml", {}, {});
      auto plain = open_dataset(loaded.settings.data, {.config_folder = folder.path(), .data_folder = {}, .seed = 1, .quiet = true});
      auto const data = viewed(std::move(plain), loaded.settings.model, 1);
      auto const all = by_length(*data, 16, 3, 3);
      REQUIRE(all.groups.size() == 1);
      Index const last = (characters - 1) % 16;
      CHECK(all.groups.front().shortest == (last == 0 ? 16 : last));
      CHECK(all.groups.front().longest == 16);
    }
  }

  TEST_CASE("a relative path of the data is found where the run read it, from the run's folder and for a run of its config.yaml") {
    test::Folder const folder;
    auto const project = folder / "project";
    fs::create_directories(project / "texts");
    fs::create_directories(project / "configs");
    std::string lines, text;
    for (int i = 0; i < 60; ++i) lines += fmt::format("w{} w{}\n", i % 5, i % 3), text += fmt::format("{} and ", i);
    for (char const* name : {"texts/train.de", "texts/train.en", "texts/held.de", "texts/held.en", "texts/test.de", "texts/test.en"})
      test::put(project / name, lines);
    test::put(project / "texts/words.txt", text);
    test::put(project / "texts/table.csv", "text,label\na b,x\nc d,y\na d,x\nb c,y\n");
    test::put(project / "texts/grammar.yaml", test::get("configs/data/english.yaml"));
    test::put(project / "words.txt", text + "up");
    test::run_well({"tokenize", project / "words.txt", "--train", "260", "--output", project / "pairs"});
    std::string const gpt = "{kind: gpt, layers: 1, heads: 1, width: 4, context: 8}", training = "\ntrain: {steps: 1, batch: 2}\n";
    test::put(project / "base.yaml", "name: base\ndata: {kind: text, path: words.txt}\nmodel: " + gpt + training);
    test::run_well({"run", project / "base.yaml", "--output", project, "--quiet"});
    struct Case {
      std::string data, model, file;
    };
    for (Case const& each : std::initializer_list<Case>{
             {"{kind: text, path: texts/words.txt}", gpt, "texts/words.txt"},
             {"{kind: text, path: ../words.txt}", gpt, "words.txt"},
             {"{kind: text, path: texts/words.txt, tokenizer: {kind: bpe, vocabulary: pairs}}", gpt, "texts/words.txt"},
             {"{kind: text, path: texts/words.txt, tokenizer: {kind: run, from: base}}", gpt, "texts/words.txt"},
             {"{kind: text, path: words.txt}", gpt + "\ninit: {from: base}", "words.txt"},
             {"{kind: grammar, path: texts/grammar.yaml}", "{kind: gpt, layers: 1, heads: 1, width: 4, context: 32}", "texts/grammar.yaml"},
             {"{kind: agreement, path: texts/grammar.yaml, training: 4, validation: 4}", "{kind: bag_of_words, width: 4, context: 32}",
              "texts/grammar.yaml"},
             {"{kind: examples, training: texts/table.csv, validation: texts/table.csv, header: true, text: \"{text}\"}",
              "{kind: bag_of_words, width: 4, context: 8}", "texts/table.csv"},
             {"{kind: parallel, train: texts/train, validation: texts/held, test: texts/test, from: de, to: en, least_count: 1}",
              "{kind: transformer, layers: 1, heads: 1, width: 4, context: 8}", "texts/train.de"}}) {
      if (each.data.starts_with("{kind: parallel") && !test::has_room("translation")) continue;
      CAPTURE(each.data);
      bool const up = each.data.find("../") != std::string::npos;
      auto const config = (project / (up ? "configs/run.yaml" : "run.yaml")).string(), runs = (folder / "elsewhere").string(),
                 found = runs + "/found", file = (project / each.file).string();
      test::put(config, "name: found\ndata: " + each.data + "\nmodel: " + each.model + training);
      test::run_well({"run", config, "--output", runs, "--quiet", "--fresh"});
      auto const evaluated = test::run_well({"evaluate", found});
      CHECK(evaluated.errors.starts_with("data are taken from where the run has read them, unchanged: " + file));
      CHECK(std::ranges::count(evaluated.errors, '\n') == 1);
      CHECK(test::run_heed({"evaluate", found, "--quiet"}).errors.empty());
      CHECK(test::run_heed({"check", found + "/config.yaml"}).code == 0);
      auto const again =
          test::run_well({"run", found + "/config.yaml", "name=again", "--output", runs, "--fresh", "train={steps: 1, batch: 2}"});
      CHECK(again.errors.find("replaces the whole section; no longer set: train.accumulate, ") != std::string::npos);
      CHECK((each.file != "texts/table.csv" || again.output.find(" (this run ") != std::string::npos));
      test::refuses({"evaluate", found, "--data", runs}, 3, {"no such file", "which is looked for without --data"});
      // It is said if the file has changed, and if it is gone.
      auto const before = test::get(file);
      test::put(file, before + "w1\n");
      test::refuses({"evaluate", found}, 3, {"is no longer what the run has read: its SHA-256 was "});
      fs::remove(file);
      test::refuses({"evaluate", found}, 3, {"no such file, neither as ", ", nor as ", "which the run has read"});
      test::put(file, before);
    }
  }

  TEST_CASE("rows by length: as they were, padded no more than their batch needs" * test::needs("translation")) {
    LoadedExperiment const loaded = load_experiment(copies().folder / "copies.yaml", {}, {});
    auto const data =
        open_dataset(loaded.settings.data, {.config_folder = copies().folder.path(), .data_folder = {}, .seed = 1, .quiet = true});
    auto const all = by_length(*data, 12, 8, 3);
    CHECK(all.length_of == "source");
    CHECK(all.rows == 20);
    std::map<Index, std::vector<Index>> sources;
    for (auto const& group : all.groups) {
      CHECK(std::ssize(group.folds) == std::min(group.rows, max_folds));
      for (auto const& fold : group.folds)
        for (auto const& rows : fold) {
          CHECK(rows.batch.rows() <= 3);
          auto const lengths = rows.batch["source_lengths"].data<std::int64_t>();
          CHECK(rows.batch["source"].size(1) == std::ranges::max(lengths));
          for (std::size_t row = 0; row < rows.numbers.size(); ++row) {
            auto const source = rows.batch["source"].rows(static_cast<Index>(row), 1).data<std::int64_t>();
            sources[rows.numbers[row]].assign(source.begin(), source.begin() + lengths[row]);
            CHECK(lengths[row] >= group.shortest);
            CHECK(lengths[row] <= group.longest);
          }
        }
    }
    auto const held = lines_of(copies().folder / "held.x");
    REQUIRE(sources.size() == held.size());
    for (auto const& [number, source] : sources)
      CHECK(data->facts().tokenizer->decode({source.begin(), source.end() - 1}) == at(held, number));
  }
}
