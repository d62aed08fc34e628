#include <grp.h>

#include "nn/batch.hpp"
#include "nn/files/checkpoint.hpp"
#include "nn/files/safetensors.hpp"
#include "tests/experiments/refused.hpp"

// Whatever a user's files hold, the program ends in one line that says where and what, with the exit code that belongs to it:
// 2 for the configuration and the command line, 3 for data, 4 for a training that fails, 1 for the rest.

TEST_SUITE("malformed") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  using test::BadFile, test::Damage, test::folder_there, test::gone, test::half, test::Words;
  using Arguments = std::vector<std::string>;
  using Tensors = std::vector<std::pair<std::string, Tensor>>;
  using Metadata = std::map<std::string, std::string>;

  struct Bench : test::GoodRun {
    Bench()
        : GoodRun({"name: bad", "seed: 1", "data: {kind: grammar, validation: 8, ngram_sentences: 20}",
                   "model: {kind: gpt, layers: 1, heads: 2, width: 16, context: 32}", "train: {steps: 2, batch: 2, checkpoint: {every: 1}}",
                   "dtype: float32"}) {}
  };

  /// A run of two steps, made once.
  fs::path finished_run() {
    static Bench const bench;
    static bool const made = test::run_heed(bench.command()).code == 0;
    REQUIRE(made);
    return bench.run;
  }

  Tensors tensors_of(fs::path const& path) {
    SafetensorsFile const file(path);
    Tensors tensors;
    for (auto const& name : file.names()) tensors.emplace_back(name, file.tensor(name));
    return tensors;
  }

  Tensor& named(Tensors& tensors, std::string const& name) { return std::ranges::find(tensors, name, &Tensors::value_type::first)->second; }

  Damage saved(Tensors const& tensors) {
    return std::function([tensors](fs::path const& path) { save_safetensors(path, tensors); });
  }
  /// A checkpoint with other tensors or metadata.
  Damage rewritten(std::function<void(Tensors&, Metadata&)> const& change) {
    return std::function([change](fs::path const& path) {
      Tensors tensors = tensors_of(path);
      Metadata metadata = SafetensorsFile(path).metadata();
      change(tensors, metadata);
      save_safetensors(path, tensors, metadata);
    });
  }
  Damage with_metadata(std::string const& key, std::string const& value) {
    return rewritten([=](Tensors&, Metadata& metadata) { metadata[key] = value; });
  }
  void one_more(Tensors& tensors, Metadata&) { tensors.emplace_back("x", Tensor::full({1}, 1, DType::float32)); }

  /// Of a finished run's folder ("": itself), and what a command says beside the run's path.
  struct BadRun {
    std::string file;
    Damage damage;
    int code;
    Words words;
  };
  /// `command`: "run" of its configuration with more arguments, or another command of its folder.
  void refuse_runs(Arguments const& command, std::vector<BadRun> const& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(i);
      Bench const bench;
      fs::create_directories(bench.output);
      fs::copy(finished_run(), bench.run, fs::copy_options::recursive);
      fs::remove(bench.run / "summary.json");  // of a run that was cut off: else its rows are held against that
      rows[i].damage(rows[i].file.empty() ? bench.run : bench.run / rows[i].file);
      Words words = rows[i].words;
      words.push_back(bench.run.string());
      test::refuses(command[0] == "run" ? bench.command({command.begin() + 1, command.end()}) : Arguments{command[0], bench.run.string()},
                    rows[i].code, words);
    }
  }

  /// For a child: becomes a user who may do nothing here.
  void drop_privileges() {
    if (::geteuid() != 0) return;
    if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(125);
  }

  }  // namespace

  TEST_CASE("the configuration that the cases change is a good one") { CHECK(fs::exists(finished_run() / "summary.json")); }

  TEST_CASE("configurations: more in suite config_errors") {
    Bench().refuses_lines({
        {2, "sede: 1", {":2:1: unknown key 'sede'; did you mean 'seed'?"}},
        {2, "seed: -1", {":2:7:", "'seed'", "found '-1'"}},
        {2, "seed: {a: 1}", {":2:7:", "found a section"}},
        {2, "name: bad", {":2:1: duplicate key 'name' (first in line 1)"}},
        {2, "seed: \xff\xfe", {":2:7: byte 0xff is not UTF-8"}},
        {2, "] seed: 1", {":2:", "not YAML"}},
        {1, "name: ../bad", {":1:7:", "name", "../bad"}},
        {1, "name: /tmp/bad", {":1:7:", "name", "/tmp/bad"}},
        {1, "name: ''", {":1:7:", "name"}},
        {1, "name: bad/../../bad", {":1:7:", "name"}},
        {1, "name: .", {":1:7:", "'.' is no name"}},
        {1, "name: bad/./bad", {":1:7:", "'.' is no name"}},
        {1, "name: bad/", {":1:7:", "a name is missing beside '/'"}},
        {1, "name: \"bad\\nbad\"", {":1:7: name: 'bad\\x0abad'", "it holds U+000A, which is not shown"}},
        {1, "name: \"\\u202egpj.bad\"", {":1:7: name: '\\u202egpj.bad'", "it holds U+202E, which is not shown"}},
        {1, "name: bad\xe2\x80\x8f", {":1:7:", "it holds U+200F, which is not shown"}},
        {1, "name: " + std::string(241, 'n'), {":1:7:", "it has 241 bytes, more than 240"}},
        {1, "name: ${sede}", {":1:7: unknown key '${sede}'; did you mean 'seed'?"}},
        {1, "name: ${model}", {":1:7:", "single value"}},
        {3, "", {":1:1: missing key 'data.kind'"}},
        {3, "data: {kind: txt}", {":3:14:", "found 'txt'; did you mean 'text'?"}},
        {3, "data: {kind: text}", {":3:7:", "data.path"}},
        {3, "data: {kind: text, path: a.txt, name: tinyshakespeare}", {":3:39:", "either path or name"}},
        {3, "data: {kind: text, name: tinyshakespear}", {":3:26:", "tinyshakespeare"}},
        {3, "data: {kind: text, path: a.txt, validation: 1.5}", {":3:45:", "data.validation"}},
        {3, "data: {kind: batches, path: a.safetensors}", {":3:7:", "missing key 'data.vocabulary'"}},
        {3, "data: {kind: grammar, longest: 0}", {":3:32:", "data.longest"}},
        {3, "data: [grammar]", {":3:7:", "found a list"}},
        {4, "model: {kind: gtp}", {":4:15:", "did you mean 'gpt'?"}},
        {4, "model: {kind: gpt, layrs: 1}", {":4:20: unknown key 'model.layrs'; did you mean 'layers'?"}},
        {4, "model: {kind: gpt, layers: 0}", {":4:28:", "model.layers"}},
        {4, "model: {kind: gpt, layers: 1001}", {":4:28:", "model.layers"}},
        {4, "model: {kind: gpt, heads: 3, width: 16}", {":4:27:", "heads"}},
        {4, "model: {kind: gpt, dropout: 1.0}", {":4:29:", "model.dropout"}},
        {4, "model: {kind: gpt, dropout: .nan}", {":4:29:", "model.dropout"}},
        {4, "model: {kind: gpt, attention: lokal}", {":4:31:", "model.attention"}},
        {4, "model: {kind: gpt, attention: {score: scaled-dot}}", {":4:39:", "did you mean 'scaled_dot'?"}},
        {4, "model: {kind: gpt, position: learnt}", {":4:30:", "did you mean 'learned'?"}},
        {4, "model: {kind: gpt, context: 16}", {":4:29: model.context: 16 is too short", "32"}},
        {5, "train: {steps: -1}", {":5:16:", "train.steps"}},
        {5, "train: {batch: 0}", {":5:16:", "train.batch"}},
        {5, "train: {optimizer: {kind: adamw, lr: fast}}", {":5:38:", "train.optimizer.lr"}},
        {5, "train: {optimizer: {kind: sgd, betas: [0.9, 0.99]}}", {":5:32: unknown key 'train.optimizer.betas'"}},
        {5, "train: {optimizer: {kind: adamw, betas: [0.9]}}", {":5:", "betas"}},
        {5, "train: {optimizer: {kind: adamw, betas: [0.9, 1.5]}}", {":5:", "betas"}},
        {5, "train: {schedule: {kind: cosin}}", {":5:26:", "did you mean 'cosine'?"}},
        {5, "train: {clip: 0}", {":5:15:", "train.clip"}},
        {5, "train: {evaluate: {batches: some}}", {":5:29:", "batches"}},
        {5, "train: {evaluate: {every: 0}}", {":5:27:", "train.evaluate.every"}},
        {5, "train: {ema: 1}", {":5:14:", "train.ema"}},
        {5, "train: {checkpoint: 5}", {":5:21:", "train.checkpoint"}},
        {6, "dtype: float16", {":6:8:", "'dtype'"}},
        {6, "ablation: x", {":1:1: unknown key 'name' (keys of a run belong in the base, or in vary)"}},
        {6, "train.steps: 5", {":6:1:", "train: {steps: …}"}},
    });
  }

  TEST_CASE_FIXTURE(Bench, "configurations that are no YAML at all") {
    std::vector<BadFile> rows{{gone, {"no such file"}, {}, 2}, {folder_there, {"is a folder"}, {}, 2}};
    for (Damage const& text : {Damage(""), Damage("\n\n"), Damage("just words"), Damage("- a\n- b\n"), Damage("{"),
                               Damage(std::string(1000, '[')), Damage(std::string("\177ELF\2\1\1\0\0\0", 10)),
                               Damage(std::string(5000, '\xff')), Damage(std::string("\xff\xfen\0a\0m\0e\0", 10))})
      rows.insert(rows.begin(), {text, {"bad.yaml:"}, {}, 2});
    refuses_files(0, "", "bad.yaml", rows);
  }

  TEST_CASE("what cannot fit into memory is refused at once") {
    auto const seconds_of = [](std::vector<test::BadLine> const& rows) { return test::seconds_of([&] { Bench().refuses_lines(rows); }); };
    std::vector<test::BadLine> const too_large{
        {4, "model: {kind: gpt, layers: 900, heads: 2, width: 60000, context: 32}", {":4:", "GB"}},
        {4, "model: {kind: gpt, layers: 1000, heads: 1, width: 65536, context: 1048576, tie: false}", {":4:", "GB"}},
        {4, "model: {kind: gpt, layers: 2, heads: 1, width: 65536, context: 32, attention: general}", {":4:", "GB"}},
        {5, "train: {batch: 1000000000}", {":5:", "train.batch", "GB"}},
        {5, "train: {batch: 1000000000000}", {":5:", "train.batch", "GB"}},
        {5, "train: {accumulate: 1000000000000}", {":5:", "sequences"}},
        {5, "train: {steps: 1000000000000, accumulate: 10000}", {":5:", "sequences"}},
    };
    // Where each start of the program takes seconds, as under sanitizers: not five times what a wrong word takes.
    double const wrong_word = seconds_of({{5, "train: {batch: many}", {":5:", "train.batch"}}});
    CHECK(seconds_of(too_large) < std::max(30.0, 5 * wrong_word * static_cast<double>(too_large.size())));
  }

  TEST_CASE_FIXTURE(Bench, "command lines: more in suite command_line") {
    auto const path = at("bad.yaml");
    test::refuses({"runn", path}, 2, {"runn", "did you mean 'run'?"});
    test::refuses({"run", path, "sede=1"}, 2, {"argument 'sede=1'", "did you mean 'seed'?"});
    test::refuses({"run", path, "name=../up"}, 2, {"argument 'name=../up'"});
    test::refuses({"check", "bad.yml"}, 2, {"bad.yml", "no such file"});
    test::refuses({"sample", "/no/such/run"}, 2, {"/no/such/run", "no such run"});
    test::put(folder / "runs", "a file where the runs should be");
    test::refuses(command(), 1, {run.string()});
  }

  TEST_CASE_FIXTURE(Bench, "texts: more in suite text") {
    std::vector<BadFile> const rows{
        {gone, {"no such file"}},
        {"", {"the file is empty"}},
        {std::string(500, 'a') + "\xc3", {"500", "UTF-8"}},
        {std::string(33, 'a'), {"too few for a context of 32", "29 training tokens"}},
        {std::string(33, 'a'), {"too few for a context of 32"}, {"data.tokenizer=byte"}},
        {folder_there, {"directory"}},
        {test::pipe_there, {"not a regular file"}},
        {test::link_to("t.txt"), {}},  // leads to itself
    };
    refuses_files(3, "data: {kind: text, path: t.txt}", "t.txt", rows);
    refuses_files(3, "data: {kind: text, name: tinyshakespeare}", "data/tinyshakespeare/input.txt",
                  {{"All the world's a stage", {}, {"--data", at("data")}}});
  }

  TEST_CASE("grammars: more in suite grammar") {
    std::vector<BadFile> const rows{
        {"", {"empty"}},
        {"start: S\nrules: {S: [a b], S: [c]}\n", {"g.yaml:2:", "duplicate key"}},
        {"start: S\nrules: {S: [a S]}\n", {"S"}},
        {"start: S\nrules: {S: [T, U], T: [a], U: [a]}\n", {"ambiguous"}},
        {std::string(200, '{'), {"g.yaml:"}},
        {"start: S\nrules: {S: [" + std::string(70, 'a') + " " + std::string(120, 'b') + "], 3: 4, [x]: y}\n", {"g.yaml:2:"}},
    };
    Bench().refuses_files(3, "data: {kind: grammar, path: g.yaml, validation: 8, ngram_sentences: 20}", "g.yaml", rows);
  }

  TEST_CASE("batches: more in suites batches and safetensors") {
    Tensor const good = Tensor::zeros({4, 2, 32}, DType::int64);
    auto const both = [&](Tensor const& targets) { return saved({{"inputs", good}, {"targets", targets}}); };
    std::vector<BadFile> const rows{
        {gone, {"no such file"}},
        {both(good), {"step 4 does not exist", "4 steps"}, {"train.steps=5"}},
        {saved({{"inputs", good}}), {"there is no tensor 'targets'"}},
        {both(Tensor::full({4, 2, 32}, -2, DType::int64)), {"'targets'[0, 0, 0] is -2"}},
        {both(Tensor::zeros({4, 32, 2}, DType::int64)), {"differ in shape"}},
        {"not a safetensors file, but a text that is long enough", {"header"}},
        {folder_there, {"directory"}},
    };
    Bench().refuses_files(3, "data: {kind: batches, path: b.safetensors, vocabulary: 9}", "b.safetensors", rows);
  }

  TEST_CASE("weights to start from") {
    Tensors const good = tensors_of(finished_run() / "checkpoint.safetensors");
    auto const changed = [&](std::function<void(Tensors&)> const& change) {
      Tensors tensors = good;
      change(tensors);
      return saved(tensors);
    };
    auto const with = [&](std::string const& name, Tensor const& value) { return changed([&](Tensors& t) { named(t, name) = value; }); };
    auto const full = [](Index size, double value) { return Tensor::full({size}, value, DType::float32); };
    auto const others = [&](Tensors& t) {
      std::erase_if(t, [](auto const& each) { return each.first == "norm.weight" || each.first == "blocks.0.mlp.up.bias"; });
      t.emplace_back("stranger", full(2, 1));
      named(t, "norm.bias") = full(17, 1);
    };
    auto const whole = test::get(finished_run() / "checkpoint.safetensors");
    std::vector<BadFile> const rows{
        {gone, {"no such file"}},
        {with("norm.weight", full(16, std::nan(""))), {"tensor 'norm.weight' holds", "at element 0"}},
        {with("norm.weight", full(16, std::numeric_limits<double>::infinity())), {"tensor 'norm.weight' holds", "at element 0"}},
        {with("norm.weight", Tensor::zeros({16}, DType::int64)), {"'norm.weight' is int64"}},
        {saved({}), {"'token_embedding.weight' [", "'blocks.0.norm1.weight' [16] is missing; and 17 more"}},
        {changed(others),
         {"'norm.weight' [16] is missing", "'blocks.0.mlp.up.bias' [64] is missing", "'stranger' [2] is not the model's",
          "'norm.bias' is [17], the model's is [16]"}},
        {whole.substr(0, 300), {}},
    };
    Bench().refuses_files(6, "init: {from: w.safetensors}", "w.safetensors", rows);
  }

  TEST_CASE("run folders to go on in: more in suites checkpoint, record and damaged") {
    std::string const model = "checkpoint.safetensors", state = "state-2.safetensors", lines = "metrics.jsonl", config = "config.yaml";
    std::vector<BadRun> const rows{
        {model, half, 3, {model, "cut short"}},
        {model, with_metadata("step", "two"), 3, {model, "'two'"}},
        {model, with_metadata("state_sha256", std::string(64, '0')), 3, {state, "is not the state"}},
        {model, rewritten([](Tensors& tensors, Metadata&) { tensors.pop_back(); }), 3, {model, "is missing"}},
        {model, rewritten(one_more), 3, {model, "'x' [1]"}},
        {state, gone, 3, {state}},
        {lines, "{\"step\":0}\nrubbish\n{\"step\":1}\n", 3, {lines + ":2:"}},
        {lines, "{\"step\":0}\n", 3, {lines, "ends at step 0", "step 2"}},
        {lines, gone, 3, {lines, "holds no rows", "step 2"}},
        {lines, folder_there, 1, {lines, "directory"}},
        {config, "", 2, {config + ":1:1"}},
        {config, "\xff\xfe", 2, {config + ":1:1"}},
        {config, "name: bad\nseed: 2\n", 2, {"what differs", "seed"}},
        {config, Bench().with(5, "train: {steps: many}"), 2, {"what differs", "train.steps"}},
        {config, gone, 2, {config}},
        {config, folder_there, 2, {config, "is not a regular file"}},
        {".lock", folder_there, 1, {"directory"}},
    };
    refuse_runs({"run", "train.steps=4"}, rows);
  }

  TEST_CASE("run folders to sample from: more in suites model and sample") {
    std::string const model = "checkpoint.safetensors", config = "config.yaml";
    std::vector<BadRun> const rows{
        {"", folder_there, 3, {"no checkpoint"}},
        {model, rewritten([](Tensors&, Metadata& all) { all.erase("data"); }), 3, {"do not describe its data"}},
        {model, with_metadata("data", "many"), 3, {"data"}},
        {model, with_metadata("data", heed::Signature::tokens(3).text()), 3, {"token_embedding.weight"}},
        {model, with_metadata("tokenizer", ""), 2, {}},
        {model, with_metadata("tokenizer", "[[["), 3, {}},
        {model, half, 3, {"cut short"}},
        {config, "model: 3\n", 2, {"config.yaml:1:"}},
        {config, gone, 2, {"config.yaml", "no such file"}},
    };
    refuse_runs({"sample"}, rows);
  }

  TEST_CASE_FIXTURE(Bench, "trainings that fail name the step and where") {
    for (auto const& each : std::vector<std::pair<std::string, Words>>{
             {"train.optimizer={kind: sgd, lr: 1.0e9}", {"step ", ": ", "at element", "learning rate"}},
             {"train.optimizer={kind: adamw, lr: 1.0e9}", {"step ", ": ", "at element", "learning rate"}},
             {"init.std=1e38", {"step 0", "infinity", "from the start"}},
         }) {
      CAPTURE(each.first);
      fs::remove_all(output);
      test::refuses(command({each.first, "train.steps=50"}), 4, each.second);
      CHECK(!fs::exists(run / "summary.json"));
    }
  }

  TEST_CASE_FIXTURE(Bench, "files that may not be read, folders that may not be written") {
    test::put(folder / "closed.yaml", with());
    test::put(folder / "closed.txt", std::string(1000, 'a'));
    for (auto const* const name : {"closed.yaml", "closed.txt"}) REQUIRE(::chmod((folder / name).c_str(), 0) == 0);
    REQUIRE(::chmod(folder.path().c_str(), 0555) == 0);
    auto const as_nobody = test::run_heed({"list"}, drop_privileges);
    if (as_nobody.code == 0) {  // where that user may start the program
      test::refuses({"run", at("closed.yaml")}, 3, {at("closed.yaml"), "Permission denied"}, drop_privileges);
      test::refuses(command({"data={kind: text, path: closed.txt}"}), 3, {at("closed.txt"), "Permission denied"}, drop_privileges);
      test::refuses(command(), 1, {run.string(), "Permission denied"}, drop_privileges);
    }
    REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  }

  TEST_CASE_FIXTURE(Bench, "terminals and logs that cannot be written") {
    auto const full = [](int descriptor) { return [descriptor] { ::dup2(::open("/dev/full", O_WRONLY), descriptor); }; };
    auto arguments = command();
    std::erase(arguments, "--quiet");
    CHECK(test::run_heed(arguments, full(STDERR_FILENO)).code == 0);  // a training outlives its log
    CHECK(test::run_heed({"run"}, full(STDERR_FILENO)).code == 2);
    test::refuses({"list", "keys"}, 1, {"standard output: "}, full(STDOUT_FILENO));
  }
}
