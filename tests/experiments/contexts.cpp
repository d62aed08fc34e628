#include "experiments/train/contexts.hpp"

#include "autograd/graph.hpp"
#include "autograd/ops/shape.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"
#include "experiments/train/train.hpp"
#include "tests/experiments/runs.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/refusal.hpp"
#include "tests/rooms.hpp"

// The loss in rows of other lengths than those of training.

TEST_SUITE("contexts") {
  using namespace heed;
  using doctest::Approx;
  namespace fs = std::filesystem;

  namespace {

  using Values = std::map<std::string, double>;

  /// 1,300 characters of which some follow others more often.
  std::string text() {
    std::string all;
    for (int i = 0; i < 1'300; ++i) all += "abcde\n"[(i * i + i / 7 + (i * i * i) % 11) % 6];
    return all;
  }

  char const* const half_held_out = "{kind: text, path: text.txt, validation: 0.5}";

  struct Texts {
    test::Folder folder;
    fs::path run = folder / "runs" / "run";
    Texts() { test::put(folder / "text.txt", text()); }

    LoadedExperiment load(std::string const& more, std::string const& data = half_held_out) const {
      test::put(folder / "run.yaml", fmt::format("name: run\ndata: {}\n{}\n", data, more));
      return load_experiment(folder / "run.yaml", {}, {.output = folder / "runs", .data = {}, .config_folder = {}});
    }
    /// Without the file's name.
    std::string refusal(std::string const& model, std::string const& lengths, std::string const& data = half_held_out) const {
      auto const message = test::refusal<ConfigError>([&] {
        auto const loaded =
            load(fmt::format("model: {{{}}}\ntrain: {{steps: 1, batch: 2, evaluate: {{lengths: {}}}}}", model, lengths), data);
        Trainer const trainer(loaded, true);
      });
      auto const file = (folder / "run.yaml").string();
      return message.starts_with(file) ? message.substr(file.size()) : message;
    }
    std::vector<std::string> command() const {
      return {"run", (folder / "run.yaml").string(), "--output", (folder / "runs").string(), "--threads", "1", "--quiet"};
    }
  };

  std::string const small = "kind: gpt, layers: 1, heads: 2, width: 8, context: 16";

  Values evaluated(Trainer& trainer) {
    Row row;
    trainer.evaluate(row);
    return {row.values.begin(), row.values.end()};
  }

  /// The table's numbers, by length and position: loss, standard error, count.
  using Table = std::map<std::pair<Index, Index>, std::vector<double>>;
  Table table_of(fs::path const& file) {
    auto const lines = parse_csv(test::get(file));
    REQUIRE(!lines.empty());
    CHECK(lines.front() == std::vector<std::string>{"length", "position", "loss", "standard_error", "count"});
    Table table;
    for (std::size_t i = 1; i < lines.size(); ++i)
      table[{std::stoll(lines[i][0]), std::stoll(lines[i][1])}] = {std::stod(lines[i][2]), std::stod(lines[i][3]), std::stod(lines[i][4])};
    return table;
  }

  }  // namespace

  TEST_CASE("loss by place: means, standard errors and counts of what counts, in any blocks") {
    Batch const batch{{"inputs", Tensor::full({3, 2}, 0, DType::int64)},
                      {"targets", Tensor::of(std::vector<Index>{0, 1, 1, -1, 1, -1}, {3, 2})}};
    Tensor const logits = Tensor::of({0., 0., 0., 1., 2., 0., 5., 5., 0., 3., 9., 9.}, {6, 2}, DType::float64);
    auto const of = [](double right, double wrong) { return std::log(1 + std::exp(wrong - right)); };
    std::vector<double> const first{of(0, 0), of(0, 2), of(3, 0)};
    auto const expected = describe(first);
    for (Index const at_once : {6, 4, 1}) {
      LossByPosition by_position;
      for (Index at = 0; at < 6; at += at_once) by_position.observe(batch, at, slice(logits, 0, at, std::min<Index>(6, at + at_once)));
      REQUIRE(by_position.positions().size() == 2);
      CHECK(by_position.positions()[0].count == 3);
      CHECK(by_position.positions()[0].mean == Approx(expected.mean).epsilon(1e-14));
      CHECK(by_position.positions()[0].standard_error() == Approx(expected.deviation / std::sqrt(3)).epsilon(1e-13));
      CHECK(by_position.positions()[1].count == 1);
      CHECK(by_position.positions()[1].mean == Approx(of(1, 0)).epsilon(1e-14));
      CHECK(std::isnan(by_position.positions()[1].standard_error()));
    }
  }

  TEST_CASE_FIXTURE(Texts, "the trained length's loss is the validation's own; others are of the same text in other rows") {
    for (std::string const position :
         {"rotary", "none", "sinusoidal", "alibi", "t5", "kerple", "fire", "shaw", "{kind: rotary, scaling: {kind: ntk, factor: 4}}"}) {
      CAPTURE(position);
      auto const loaded = load("dtype: float64\ninit: {std: 0.4}\nmodel: {" + small + ", position: " + position +
                               "}\ntrain: {steps: 3, batch: 4, ema: 0.9, evaluate: {lengths: [8, 16, 40]}}");
      Trainer trainer(loaded, true);
      for (int step = 0; step < 3; ++step) {
        Row row;
        trainer.train_step(row);
      }
      auto const found = evaluated(trainer);
      CHECK(found.at("validation.loss.length16") == found.at("validation.loss"));
      CHECK(found.at("validation.ema.loss.length16") == found.at("validation.ema.loss"));
      CHECK(found.at("validation.accuracy.length16") == found.at("validation.accuracy"));
      CHECK(found.at("validation.ema.loss.length40") != found.at("validation.loss.length40"));
      NoGrad const no_grad;
      for (Index const length : {8, 40}) {
        double sum = 0, targets = 0;
        for (Index i = 0; i < trainer.data().validation_batches(1, length); ++i) {
          Batch const batch = trainer.data().validation(i, 1, length);
          double const counts = counted(batch["targets"]);
          sum += counts * cross_entropy(trainer.model().logits(batch, {}), batch["targets"]).item();
          targets += counts;
        }
        CHECK(targets == 649);  // every held-out character but the first, whatever the rows
        CHECK(found.at(fmt::format("validation.loss.length{}", length)) == Approx(sum / targets).epsilon(1e-12));
      }
    }
  }

  TEST_CASE_FIXTURE(Texts, "a few batches are the same stretch of text at every length") {
    auto const loaded = load("model: {" + small + ", position: none}\ntrain: {steps: 1, batch: 8, evaluate: {batches: 2, lengths: [64]}}");
    Trainer const trainer(loaded, true);
    trainer.contexts().write(folder.path());
    auto const table = table_of(folder / "loss_by_position.csv");
    CHECK(table.size() == 16 + 64);
    double counts[2] = {0, 0};
    for (auto const& [position, values] : table) counts[position.first == 64] += values[2];
    CHECK(counts[0] == 2 * 8 * 16);
    CHECK(counts[1] == 2 * 8 * 16);
  }

  TEST_CASE_FIXTURE(Texts, "a run records them and leaves the loss by position, the same when it is made again and after a kill") {
    std::string const config =
        "model: {" + small +
        ", position: alibi}\ntrain: {steps: 30, batch: 4, evaluate: {every: 20, lengths: [48, 32]}, checkpoint: {every: 5}}";
    load(config);
    test::run_well(command());
    auto const history = read_history(run);
    for (char const* const name : {"validation.loss.length48", "validation.loss.length32"}) {
      REQUIRE(history.contains(name));
      CHECK(history.at(name).size() == 3);  // at 0, 20 and 30
    }
    CHECK(!history.contains("validation.loss.length16"));  // nobody asked
    auto const table = table_of(run / "loss_by_position.csv");
    double loss[2] = {0, 0}, counts[2] = {0, 0};
    for (auto const& [position, values] : table) {
      CHECK((position.first == 16 || position.first == 48));
      CHECK(position.second < position.first);
      loss[position.first == 48] += values[0] * values[2], counts[position.first == 48] += values[2];
    }
    CHECK(counts[0] == 649);
    CHECK(loss[0] / counts[0] == Approx(history.at("validation.loss").back().second).epsilon(1e-5));
    CHECK(loss[1] / counts[1] == Approx(history.at("validation.loss.length48").back().second).epsilon(1e-5));

    Texts const cut;
    cut.load(config);
    test::end_at(cut.run / "checkpoint.safetensors", cut.command());
    test::run_well(cut.command());
    CHECK(test::get(cut.run / "loss_by_position.csv") == test::get(run / "loss_by_position.csv"));

    Texts const without;
    without.load("model: {" + small + "}\ntrain: {steps: 1, batch: 4}");
    test::run_well(without.command());
    CHECK(!fs::exists(without.run / "loss_by_position.csv"));
  }

  TEST_CASE_FIXTURE(Texts, "tasks whose rows fill the context, and packed sentences, are measured at any length") {
    for (std::string const data :
         {"{kind: induction, validation: 12}", "{kind: recall, pairs: 2, keys: 4, values: 4, validation: 12}",
          "{kind: lag, validation: 12}", "{kind: grammar, pack: true, longest: 8, ngram_sentences: 10, validation: 60}"}) {
      CAPTURE(data);
      auto const loaded =
          load("model: {" + small + ", position: rotary}\ntrain: {steps: 1, batch: 4, evaluate: {lengths: [16, 32, 64]}}", data);
      Trainer trainer(loaded, true);
      auto const found = evaluated(trainer);
      CHECK(found.at("validation.loss.length16") == found.at("validation.loss"));
      CHECK(std::isfinite(found.at("validation.loss.length64")));
    }
  }

  TEST_CASE_FIXTURE(Texts, "what cannot be read is refused in one line, with its place, before anything trains") {
    CHECK(refusal(small + ", position: learned", "[16, 8]").empty());
    CHECK(refusal(small + ", position: learned", "[16, 32]") ==
          ":4:54: train.evaluate.lengths: 32: learned positions end with model.context: 16; model.position: alibi, fire, kerple, none, "
          "rotary, shaw, sinusoidal or t5 does not");
    std::string const bert = "kind: bert, layers: 1, heads: 2, width: 8, context: 16";
    test::check_holds(refusal(bert, "[32]"), {"kerple"});
    CHECK(refusal(bert, "[32]").find("fire") == std::string::npos);  // it looks ahead
    CHECK(refusal(bert + ", position: alibi", "[32]").empty());
    CHECK(
        refusal(small + ", position: none, attention: {score: location}", "[8, 16, 32]") ==
        ":4:57: train.evaluate.lengths: 32: location: 32 keys, but it has learned scores for 16 places only; lengths up to 16 can be read");
    if (test::has_room("recurrent")) CHECK(refusal("kind: recurrent_lm, width: 8, context: 16", "[64]").empty());
    CHECK(refusal(small + ", position: none", "[32]", "{kind: copy, length: 4, validation: 5}") ==
          ":4:50: train.evaluate.lengths: 32: held-out sequences of these data end after 8 tokens, within model.context: 16; only texts, "
          "packed sentences (data.pack: true) and tasks without a length of their own, or with fill: true, fill any context");
    test::check_holds(refusal(small + ", position: none", "[32]", "{kind: grammar, longest: 8, ngram_sentences: 10, validation: 20}"),
                      {"held-out sequences of these data end after 9 tokens"});
    CHECK(refusal(small + ", position: none", "[6]", "{kind: copy, length: 4, validation: 5}") ==
          ":4:50: train.evaluate.lengths: 6: 6 is too short for a sequence of copy; make it 8 or more");
    CHECK(refusal(small + ", position: none", "[32]", "{kind: text, path: text.txt, validation: 0}") ==
          ":4:50: train.evaluate.lengths: 32: there are no held-out data");
    if (test::has_room("translation"))
      CHECK(refusal("kind: transformer, layers: 1, heads: 1, width: 8, context: 50, position: none", "[64]",
                    "{kind: pairs, task: {kind: reverse, length: 4}, validation: 5}") ==
            ":4:50: train.evaluate.lengths: 64: the length of a target depends on its source; heed evaluate reports each metric by length");
    CHECK(refusal(small + ", head: classification", "[8]", "{kind: topic, training: 10, validation: 5}") ==
          ":4:49: train.evaluate.lengths: needs a model that predicts tokens; this one's head predicts something else");
    CHECK(refusal(small, "[8, 8]") == ":4:49: train.evaluate.lengths: 8 is listed twice");
    CHECK(refusal(small, "[8.5]") == ":4:49: train.evaluate.lengths: 8.5 is not an integer");
    CHECK(refusal(small, "[0]") == ":4:50: 'train.evaluate.lengths[0]' wants a number ≥ 1 and ≤ 1048576, found '0'");
  }

  TEST_CASE("a report of a run and one of an ablation draw the loss over length and by position") {
    Texts const texts;
    texts.load("model: {" + small + ", position: alibi}\ntrain: {steps: 4, batch: 4, evaluate: {every: 4, lengths: [16, 32, 64]}}");
    test::run_well(texts.command());
    test::check_holds(test::get(texts.run / "report.html"), {"<h2>Length extrapolation</h2>", "16 (trained)"});
    if (!draw_plots({{.title = "a", .commands = "plot x\n"}})) return;
    CHECK(!fs::exists(texts.run / "figures" / "validation_loss_length32.svg"));

    test::put(
        texts.folder / "positions.yaml",
        "ablation: positions\nbase: run.yaml\nvary: {model.position: [alibi, none, t5]}\nseeds: 2\nmetric: validation.loss.length64\n");
    test::run_well({"run", (texts.folder / "positions.yaml").string(), "--output", (texts.folder / "runs").string(), "--quiet"});
    fs::path const ablation = texts.folder / "runs" / "positions";
    for (fs::path const& folder : {texts.run, ablation})
      for (char const* const name : {"added_loss_over_length.svg", "added_loss_by_position.svg"})
        CHECK(fs::exists(folder / "figures" / name));
    test::check_holds(test::get(ablation / "report.html"),
                      {"sequence length (tokens)", "Sequences of 64 tokens; means of neighbouring positions"});
    auto const trial = read_material(ablation).arms.front().folders.front();
    test::unseal(ablation / trial);
    test::put(ablation / trial / "loss_by_position.csv", "length,position,loss,standard_error,count\n64,0,2.5,0.1,3\n64,0,2.5,0.1,3\n");
    test::check_ends(test::run_heed({"report", ablation.string()}), 3, {"loss_by_position.csv: line 3 is not a loss at a position"});
  }
}
