// Weights that begin a run in a model that is another function of them: every key of every kind of model is changed by itself, and named if
// and only if the outputs differ from those of the model that the weights were trained in.

#include "autograd/graph.hpp"
#include "experiments/data/examples/dataset.hpp"
#include "experiments/train/session.hpp"
#include "experiments/train/train.hpp"
#include "experiments/train/weights.hpp"
#include "nn/files/safetensors.hpp"
#include "tests/difference.hpp"
#include "tests/experiments/small_ablation.hpp"
#include "tests/refusal.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("changed_function") {
  using namespace heed;
  using Words = std::vector<std::string>;

  namespace {

  /// A kind of model, with data that it reads and the keys that differ from their defaults.
  struct Subject {
    std::string kind, data, keys;
    Words rooms = {};
  };
  std::string const copy = "{kind: copy, length: 2, vocabulary: 4, validation: 2}",
                    reverse = "{kind: pairs, task: {kind: reverse, length: 2}, validation: 2}";
  std::vector<Subject> const subjects{
      {"gpt", copy, "layers: 2, context: 6, width: 8, heads: 2"},
      {"gpt", copy, "layers: 1, context: 6, width: 8, heads: 2, position: fire, attention: {align: ssmax}"},
      {"gpt", copy, "layers: 1, context: 6, width: 8, heads: 2, position: rotary, attention: local-p"},
      {"bert", "{kind: copy, length: 2, vocabulary: 4, validation: 2, forced: false}", "layers: 1, context: 6, width: 8, heads: 2"},
      {"transformer", reverse, "layers: 1, context: 6, width: 8, heads: 2", {"translation"}},
      {"single_attention", "{kind: recall, pairs: 2, keys: 3, values: 3, queries: 1, validation: 2}", "pairs: 2, keys: 3, width: 4"},
      {"recurrent_lm", copy, "width: 4, context: 6", {"recurrent"}},
      {"recurrent_seq2seq", reverse, "width: 4, embedding: 3, context: 6", {"recurrent", "translation"}},
      {"captioner",
       "{kind: glyphs, rows: 2, columns: 2, most: 2, validation: 2}",
       "convolutions: 2, channels: 8, width: 5, embedding: 3",
       {"captioning"}},
      {"bag_of_words", "{kind: test_words, tokenizer: byte}", "width: 4"},
  };

  /// Texts of one word, of the class of its letter.
  struct OneWord : ExampleSource {
    std::vector<Field> source_fields() override { return {}; }
    Examples read(DataContext const&) override {
      Examples examples;
      examples.classes = {"a", "b"};
      for (int i = 0; i < 8; ++i)
        examples.training.push_back({.first = i % 2 ? "bb b" : "aa", .label = i % 2 ? "b" : "a", .location = "here"});
      examples.held_out = examples.training;
      return examples;
    }
  };
  Declared<DataKind> const words_data{examples_kind<OneWord>("test_words", "texts of one word")};

  /// Assignments that change one key each, from what the settings describe.
  void add_changes(Settings& settings, std::string const& section, Words& out) {
    for (auto const& field : settings.fields()) {
      std::string const key = section + "." + field.name;
      auto const set = [&](auto const& value) { out.push_back(fmt::format("{}={}", key, value)); };
      auto const set_others = [&]<class T>(T value, std::initializer_list<T> others) {
        for (T const other : others)
          if (other != value && static_cast<double>(other) >= field.min && static_cast<double>(other) <= field.max) set(other);
      };
      auto const set_number = [&](double x) { set_others(x, {x * 2, x / 2, x + 1, 0.5, 1.0, 2.0, 3.0, 12.0}); };
      auto const set_integer = [&](Index n) { set_others(n, {n * 2, n / 2, n + 1, Index{1}, Index{2}, Index{4}}); };
      for (auto const& word : field.words)
        if (auto* const text = std::get_if<std::string*>(&field.target); text == nullptr || **text != word) set(word);
      if (auto* const truth = std::get_if<bool*>(&field.target)) set(**truth ? "false" : "true");
      if (auto* const integer = std::get_if<Index*>(&field.target)) set_integer(**integer);
      if (auto* const real = std::get_if<double*>(&field.target)) set_number(**real);
      if (auto* const some = std::get_if<std::optional<Index>*>(&field.target)) set_integer((*some)->value_or(3));
      if (auto* const some = std::get_if<std::optional<double>*>(&field.target)) set_number((*some)->value_or(3));
      if (auto* const inner = std::get_if<Settings*>(&field.target)) add_changes(**inner, key, out);
      if (auto* const choice = std::get_if<Choice*>(&field.target)) {
        for (auto const& option : (*choice)->options)
          if (option.name != (*choice)->kind) set(option.name);
        if ((*choice)->settings) add_changes(*(*choice)->settings, key, out);
      }
    }
  }

  struct Bench {
    explicit Bench(Subject const& subject) {
      test::put(folder / "base.yaml", fmt::format("name: base\ndtype: float64\ndata: {}\nmodel: {{kind: {}, {}}}\ninit: {{std: 0.5}}\n"
                                                  "train: {{steps: 1, batch: 4, evaluate: {{every: 10}}}}\n",
                                                  subject.data, subject.kind, subject.keys));
      auto base = loaded();
      REQUIRE(train(base, true, false) == Exit::done);
    }
    LoadedExperiment loaded(Words const& more = {}) const {
      return load_experiment(folder / "base.yaml", more, {.output = folder / "runs", .data = {}, .config_folder = {}});
    }
    test::Folder folder;
  };

  std::vector<Tensor> outputs(Model const& model, Batch const& batch) {
    NoGrad const no_grad;
    std::vector<Tensor> all;
    for (auto const& prediction : model.run(batch, Pass()).predictions) all.push_back(prediction.head.logits());
    return all;
  }

  }  // namespace

  TEST_CASE("a key is named if the model's outputs change, and if not there is no word of it") {
    std::set<std::string> kinds;
    for (Subject const& subject : subjects) {
      kinds.insert(subject.kind);
      if (!std::ranges::all_of(subject.rooms, test::has_room)) continue;
      CAPTURE(subject.kind);
      Bench const bench(subject);
      auto const before = open_run(bench.folder / "runs/base");
      Words changes;
      auto settings = bench.loaded().settings;
      add_changes(*settings.model.settings, "model", changes);
      int named = 0, silent = 0;
      for (std::string const& change : changes) {
        CAPTURE(change);
        std::string const key = change.substr(0, change.find('='));
        std::optional<LoadedExperiment> experiment;
        std::optional<Trainer> trainer;
        try {
          experiment = bench.loaded({change, "name=next", "init.from=base"});
          trainer.emplace(*experiment, true);
        } catch (Error const&) {  // these weights do not fit, or no such model can be made
          continue;
        }
        auto const batch = trainer->data().training(0, 4, trainer->model().context());
        std::optional<bool> changed;
        try {
          changed = !test::same_bits(outputs(*before.model, batch).front(), outputs(trainer->model(), batch).front());
        } catch (Error const&) {  // the model of before reads no rows of this length, say
        }
        auto const& found = trainer->unexpected_changes();
        bool const is_named =
            std::ranges::any_of(found, [&](auto const& each) { return is_within(key, each.key) || is_within(each.key, key); });
        if (changed && key.find("model.head") != 0) CHECK(is_named == *changed);
        CHECK(found.empty() == !is_named);  // no other key
        CHECK((trainer->start_remark().find(key + " is ") != std::string::npos || !is_named || key.find("kind") == std::string::npos));
        ++(is_named ? named : silent);
      }
      MESSAGE(subject.kind, ": ", named, " changes of a key named, ", silent, " without a word, of ", changes.size());
      CHECK((named > 0 || subject.kind == "recurrent_lm" ||
             subject.kind == "bag_of_words"));  // of whose weights other keys have other shapes
      CHECK(silent > 0);
    }
    auto const listed = test::run_well({"list", "models"}).output;  // and none that only a test declares
    for (auto const& kind : Registry<ModelKind>::all())
      CHECK_MESSAGE((kinds.contains(kind.name) || listed.find("  " + kind.name + "  ") == listed.npos), kind.name);
  }

  TEST_CASE("it is said in the terminal, in the summary and on the page; init.changed accepts, and must name a key") {
    Bench const bench(subjects.front());
    auto const run = [&](Words const& more) {
      Words const first{"run", bench.folder / "base.yaml", "--output", bench.folder / "runs", "--fresh", "name=next"};
      return test::run_well(
          test::joined(first, test::joined({"init.from=base", "model.heads=4", "model.activation=relu", "model.dropout=0.5"}, more)));
    };
    std::string const words =
        "the model is another function of these weights: model.heads is 4, was 2; model.activation is relu, was gelu; changed: "
        "model.dropout is 0.5, was 0.0";
    for (Words const& more : {Words(), Words{"init.changed=[model.heads]"}}) {
      CHECK(run(more).errors.find(words) != std::string::npos);
      CHECK(test::json_of(bench.folder / "runs/next/summary.json")["init"]["remark"] == words);
      CHECK(test::get(bench.folder / "runs/next/report.html").find("model.heads is 4, was 2") != std::string::npos);
    }
    CHECK(test::refusal([&] {
            Trainer(bench.loaded({"init.from=base", "init.changed=[model.haeds]"}), true);
          }).find("init.changed: there is no key model.haeds here") != std::string::npos);
    auto const same = test::run_well(
        {"run", bench.folder / "base.yaml", "name=same", "init.from=base", "model.dropout=0.5", "--output", bench.folder / "runs"});
    CHECK(same.errors.find("another function") == std::string::npos);
  }

  TEST_CASE("an ablation of such a key is refused, unless it says that this is meant") {
    Bench const bench(subjects.front());
    auto const ablation = [&](std::string const& vary, std::string const& init) {
      test::put(bench.folder / "a.yaml",
                fmt::format("ablation: a\nbase: base.yaml\nset: {{init: {{from: base{}}}}}\nvary: {{{}}}\nseeds: 2\n", init, vary));
      return (bench.folder / "a.yaml").string();
    };
    std::string const output = (bench.folder / "runs").string();
    for (auto const& [vary, key] :
         {std::pair<std::string, std::string>{"model.attention.align: [softmax, sparsemax]", "model.attention.align"},
          {"model.attention: [scaled, dot]", "model.attention.score"},
          {"model.heads: [2, 4]", "model.heads"}}) {
      for (std::string const command : {"plan", "check", "run"}) {
        test::refuses({command, ablation(vary, ""), "--output", output, "--quiet"}, 2,
                      {key + " is ", "init.changed: [" + key + "]", command == "plan" ? "" : "arm '"});
      }
      test::run_well({"check", ablation(vary, ", changed: [" + key + "]"), "--output", output});
    }
    test::run_well({"check", ablation("model.dropout: [0, 0.1]", ""), "--output", output});
  }

  TEST_CASE("a file without a configuration is said to have none; a GPT-2's config.json is its configuration") {
    Bench const bench(subjects.front());
    std::string const folder = (bench.folder / "gpt2").string();
    test::run_well({"export", bench.folder / "runs/base", "--format", "huggingface", folder});
    auto const remark = [&](Words more) {
      more.push_back("name=next");
      auto const experiment = bench.loaded(more);
      return Trainer(experiment, true).start_remark();
    };
    CHECK(remark({"init.from=" + folder}).find("another function") == std::string::npos);
    CHECK(remark({"init.from=" + folder, "model.activation=relu"}).find("model.activation is relu, was gelu") != std::string::npos);
    auto const plain = (bench.folder / "plain.safetensors").string();
    save_safetensors(plain, open_run(bench.folder / "runs/base").parameters->all());
    CHECK(remark({"init.from=" + plain}).find("no configuration") != std::string::npos);
  }
}
