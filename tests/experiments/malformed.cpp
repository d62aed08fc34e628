#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include <doctest/doctest.h>
#include <grp.h>
#include <sys/stat.h>

#include "nn/files/checkpoint.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/signature.hpp"
#include "tests/program.hpp"

// Whatever a user's files hold, the program ends in one line that says where and what, with the exit code that belongs to it:
// 2 for the configuration and the command line, 3 for data, 4 for a training that fails, 1 for the rest.

using namespace heed;
namespace fs = std::filesystem;

namespace {

using Arguments = std::vector<std::string>;
using Words = std::vector<std::string>;
using Tensors = std::vector<std::pair<std::string, Tensor>>;

Words and_also(Words words, std::string const& word) {
  words.push_back(word);
  return words;
}

/// A configuration of six lines, in which a case replaces one.
std::string config_with(std::size_t line = 0, std::string const& text = "") {
  std::vector<std::string> lines{"name: bad",
                                 "seed: 1",
                                 "data: {kind: grammar, validation: 8, ngram_sentences: 20}",
                                 "model: {kind: gpt, layers: 1, heads: 2, width: 16, context: 32}",
                                 "train: {steps: 2, batch: 2, checkpoint: {every: 1}}",
                                 "dtype: float32"};
  if (line > 0) lines.at(line - 1) = text;
  std::string all;
  for (auto const& each : lines) all += each + "\n";
  return all;
}

/// A folder to keep wrong files in.
struct Bench {
  test::Folder folder;
  fs::path output = folder / "runs";
  fs::path run = output / "bad";
  std::string at(std::string const& name) const { return (folder / name).string(); }

  Arguments command(Arguments const& overrides = {}) const {
    Arguments all{"run", at("bad.yaml"), "--output", output.string(), "--threads", "1", "--quiet"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return all;
  }

  void refuses(Arguments const& arguments, int code, Words const& words, std::function<void()> const& prepare = {}) const {
    test::refuses(arguments, code, words, prepare);
  }
  /// The same for a run of a configuration that makes no folder.
  void refuses_config(std::string const& text, int code, Words const& words, Arguments const& overrides = {}) const {
    CAPTURE(text);
    test::put(folder / "bad.yaml", text);
    refuses(command(overrides), code, words);
    CHECK(!fs::exists(run));
  }
};

/// A run of two steps, made once.
fs::path finished_run() {
  static Bench const bench;
  static bool const made = [] {
    test::put(bench.folder / "bad.yaml", config_with());
    return test::run_heed(bench.command()).code == 0;
  }();
  REQUIRE(made);
  return bench.run;
}

Tensors tensors_of(fs::path const& path) {
  SafetensorsFile const file(path);
  Tensors tensors;
  for (auto const& name : file.names()) tensors.emplace_back(name, file.tensor(name));
  return tensors;
}

/// A safetensors file whose header is given as text.
std::string with_header(std::string header, std::size_t data_bytes) {
  std::uint64_t const length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + std::string(data_bytes, '\0');
}

Tensor counting(Shape const& shape, std::int64_t modulus) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i) values.push_back(i % modulus);
  return Tensor::of(values, shape);
}

/// For a child: becomes a user who may do nothing here.
void drop_privileges() {
  if (::geteuid() != 0) return;
  if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(125);
}

}  // namespace

TEST_SUITE("malformed") {
  TEST_CASE("the configuration that the cases change is a good one") {
    Bench const bench;
    test::put(bench.folder / "bad.yaml", config_with());
    CHECK(test::run_heed(bench.command()).code == 0);
  }

  TEST_CASE("configurations") {
    Bench const bench;
    struct Case {
      std::size_t line;
      std::string text;
      Words words;  ///< what the message holds beside the file's name and line
    };
    for (auto const& [line, text, words] : std::vector<Case>{
             {2, "sede: 1", {":2:1: unknown key 'sede'; did you mean 'seed'?"}},
             {2, "seed: one", {":2:7: 'seed' wants an integer", "found 'one'"}},
             {2, "seed: 1.5", {":2:7:", "found '1.5'"}},
             {2, "seed: -1", {":2:7:", "'seed'", "found '-1'"}},
             {2, "seed: [1]", {":2:7:", "found a list"}},
             {2, "seed: {a: 1}", {":2:7:", "found a section"}},
             {2, "seed:", {":2:1:", "found nothing"}},
             {2, "seed: 99999999999999999999999", {":2:7:", "'seed'"}},
             {2, "name: bad", {":2:1: duplicate key 'name' (first in line 1)"}},
             {2, "\tseed: 1", {":2:1: a tab"}},
             {2, "seed: 1: 2", {":2:", "not YAML"}},
             {2, "seed: \"1", {"not YAML", "quote"}},
             {2, "seed: *nothing", {":2:", "not YAML"}},
             {2, "seed: !!int 1", {":2:7: tags are not used"}},
             {2, "seed: \xff\xfe", {":2:7: byte 0xff is not UTF-8"}},
             {2, "seed: " + std::string(1, '\0'), {":2:7: control character"}},
             {2, "---", {":2:1: a second document"}},
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
         })
      bench.refuses_config(config_with(line, text), 2, and_also(words, bench.at("bad.yaml")));
  }

  TEST_CASE("configurations that are no YAML at all") {
    Bench const bench;
    for (std::string const& text : {std::string(), std::string("\n\n"), std::string("just words"), std::string("- a\n- b\n"),
                                    std::string("{"), std::string(1000, '['),
                                    std::string("\x7f"
                                                "ELF\x02\x01\x01\0\0\0",
                                                10),
                                    std::string(5000, '\xff'), std::string("\xff\xfen\0a\0m\0e\0", 10)})
      bench.refuses_config(text, 2, {bench.at("bad.yaml") + ":"});
    fs::remove(bench.folder / "bad.yaml");
    bench.refuses(bench.command(), 2, {bench.at("bad.yaml"), "no such file"});
    fs::create_directory(bench.folder / "bad.yaml");
    bench.refuses(bench.command(), 2, {bench.at("bad.yaml"), "is a folder"});
  }

  TEST_CASE("what cannot fit into memory is refused at once") {
    Bench const bench;
    auto const start = std::chrono::steady_clock::now();
    std::string const place = bench.at("bad.yaml") + ":4:";
    bench.refuses_config(config_with(4, "model: {kind: gpt, layers: 900, heads: 2, width: 60000, context: 32}"), 2, {place, "GB"});
    bench.refuses_config(config_with(4, "model: {kind: gpt, layers: 1000, heads: 1, width: 65536, context: 1048576, tie: false}"), 2,
                         {place, "GB"});
    bench.refuses_config(config_with(4, "model: {kind: gpt, layers: 2, heads: 1, width: 65536, context: 32, attention: general}"), 2,
                         {place, "GB"});
    bench.refuses_config(config_with(5, "train: {batch: 1000000000}"), 2, {place, "GB"});
    bench.refuses_config(config_with(5, "train: {batch: 1000000000000}"), 2, {place, "GB"});
    bench.refuses_config(config_with(5, "train: {accumulate: 1000000000000}"), 2, {place, "GB"});
    bench.refuses_config(config_with(5, "train: {steps: 1000000000000, accumulate: 10000}"), 2,
                         {bench.at("bad.yaml") + ":5:", "sequences"});
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
  }

  TEST_CASE("command lines") {
    Bench const bench;
    test::put(bench.folder / "bad.yaml", config_with());
    auto const path = bench.at("bad.yaml");
    for (auto const& each : std::vector<std::pair<Arguments, Words>>{
             {{"runn", path}, {"runn", "did you mean 'run'?"}},
             {{"run"}, {"run", "CONFIG"}},
             {{"run", path, "seed"}, {"argument 'seed'"}},
             {{"run", path, "seed=x"}, {"argument 'seed=x'"}},
             {{"run", path, "sede=1"}, {"argument 'sede=1'", "did you mean 'seed'?"}},
             {{"run", path, "model=[1"}, {"argument 'model=[1'", "not YAML"}},
             {{"run", path, "name=../up"}, {"argument 'name=../up'"}},
             {{"run", path, "--fesh"}, {"--fesh", "--fresh"}},
             {{"run", path, "--threads", "0"}, {"--threads", "found '0'"}},
             {{"run", path, "--threads", "many"}, {"--threads", "found 'many'"}},
             {{"run", path, "--threads"}, {"--threads", "missing"}},
             {{"run", path, "--data", "/no/such/folder"}, {"--data", "/no/such/folder"}},
             {{"run", path, "--fresh", "--resume"}, {"--fresh", "--resume"}},
             {{"check", "bad.yml"}, {"bad.yml", "no such file"}},
             {{"sample", "/no/such/run"}, {"/no/such/run", "no such run"}},
             {{"list", "atention"}, {"atention", "did you mean 'attention'?"}},
         }) {
      CAPTURE(each.first.back());
      bench.refuses(each.first, 2, each.second);
    }
    test::put(bench.folder / "runs", "a file where the runs should be");
    bench.refuses(bench.command(), 1, {bench.run.string()});
  }

  TEST_CASE("texts") {
    Bench const bench;
    auto const put = [&](std::string const& text) { test::put(bench.folder / "t.txt", text); };
    auto const refuses = [&](Words const& words, std::string const& more = "") {
      bench.refuses_config(config_with(3, "data: {kind: text, path: t.txt" + more + "}"), 3, and_also(words, bench.at("t.txt")));
    };
    refuses({"no such file"});
    put("");
    refuses({"the file is empty"});
    put("x");
    refuses({"too short"});
    put("\xff\xfe");
    refuses({"UTF-8"});
    put(std::string(500, 'a') + "\xc3");
    refuses({"500", "UTF-8"});
    put(std::string(500, 'a') + "\xed\xa0\x80" + std::string(500, 'a'));
    refuses({"500", "UTF-8"});
    put("short but good");
    refuses({"too few for a context of 32"});
    put(std::string(33, 'a'));
    refuses({"too few for a context of 32", "29 training tokens"});
    refuses({"too few for a context of 32"}, ", tokenizer: byte");
    fs::remove(bench.folder / "t.txt");
    fs::create_directory(bench.folder / "t.txt");
    refuses({"directory"});
    fs::remove(bench.folder / "t.txt");
    REQUIRE(::mkfifo((bench.folder / "t.txt").c_str(), 0600) == 0);
    refuses({"not a regular file"});
    fs::remove(bench.folder / "t.txt");
    fs::create_symlink("t.txt", bench.folder / "t.txt");  // leads to itself
    refuses({});
    fs::create_directories(bench.folder / "data" / "tinyshakespeare");
    test::put(bench.folder / "data" / "tinyshakespeare" / "input.txt", "All the world's a stage");
    bench.refuses_config(config_with(3, "data: {kind: text, name: tinyshakespeare}"), 3, {bench.at("data/tinyshakespeare/input.txt")},
                         {"--data", bench.at("data")});
  }

  TEST_CASE("grammars") {
    Bench const bench;
    auto const refuses = [&](std::string const& text, Words words) {
      CAPTURE(text);
      test::put(bench.folder / "g.yaml", text);
      words.push_back(bench.at("g.yaml"));
      bench.refuses_config(config_with(3, "data: {kind: grammar, path: g.yaml, validation: 8, ngram_sentences: 20}"), 3, words);
    };
    refuses("", {"empty"});
    refuses("start: S\n", {"g.yaml:1:", "rules"});
    refuses("start: S\nrules: {S: [a b], S: [c]}\n", {"g.yaml:2:", "duplicate key"});
    refuses("start: S\nrules: {S: [a B]}\n", {"g.yaml:2:", "B"});
    refuses("start: T\nrules: {S: [a]}\n", {"g.yaml:", "T"});
    refuses("start: S\nrules: {S: [a S]}\n", {"S"});
    refuses("start: S\nrules: {S: [S S, a]}\n", {"S"});
    refuses("start: S\nrules: {S: [a], T: [b]}\n", {"T"});
    refuses("start: S\nrules: {S: {a: -1, b: 2}}\n", {"g.yaml:2:"});
    refuses("start: S\nrules: {S: {a: much}}\n", {"g.yaml:2:", "much"});
    refuses("start: S\nrules: {S: [a, a]}\n", {"g.yaml:2:"});
    refuses("start: S\nrules: {S: [T, U], T: [a], U: [a]}\n", {"ambiguous"});
    refuses("start: S\nrules: {S: [\"\xff\"]}\n", {"g.yaml:2:", "UTF-8"});
    refuses("start: S\nrulez: {S: [a]}\n", {"g.yaml:2:", "rulez"});
    refuses(std::string(200, '{'), {"g.yaml:"});
    refuses("start: S\nrules: {S: [" + std::string(70, 'a') + " " + std::string(120, 'b') + "], 3: 4, [x]: y}\n", {"g.yaml:2:"});
  }

  TEST_CASE("batches") {
    Bench const bench;
    auto const path = bench.folder / "b.safetensors";
    Tensor const good = counting({4, 2, 32}, 9);
    auto const with = [&](std::size_t at, std::int64_t value) {
      Tensor changed = good.clone();
      changed.mutable_data<std::int64_t>()[at] = value;
      return changed;
    };
    auto const refuses = [&](Words words, std::string const& steps = "2") {
      words.push_back(path.string());
      bench.refuses_config(config_with(3, "data: {kind: batches, path: b.safetensors, vocabulary: 9}"), 3, words, {"train.steps=" + steps});
    };
    refuses({"no such file"});
    auto const saved = [&](Tensors const& tensors, Words const& words, std::string const& steps = "2") {
      save_safetensors(path, tensors);
      refuses(words, steps);
    };
    saved({{"inputs", good}, {"targets", good}}, {"step 4 does not exist", "4 steps"}, "5");
    saved({{"inputs", good}}, {"there is no tensor 'targets'"});
    saved({}, {"there is no tensor"});
    saved({{"inputs", with(3, 9)}, {"targets", good}}, {"'inputs'[0, 0, 3] is 9, outside 0 … 8"});
    saved({{"inputs", good}, {"targets", with(3, -2)}}, {"'targets'[0, 0, 3] is -2"});
    saved({{"inputs", good.to(DType::float32)}, {"targets", good}}, {"'inputs' is float32, not int64"});
    saved({{"inputs", good}, {"targets", counting({4, 32, 2}, 9)}}, {"differ in shape"});
    saved({{"inputs", counting({256}, 9)}, {"targets", counting({256}, 9)}}, {"'inputs' has shape [256]"});
    saved({{"inputs", counting({4, 3, 32}, 9)}, {"targets", counting({4, 3, 32}, 9)}},
          {"3 rows, which is not a multiple of train.batch = 2"});
    saved({{"inputs", counting({4, 2, 40}, 9)}, {"targets", counting({4, 2, 40}, 9)}},
          {"sequences are 40 tokens long, but the context is 32"});

    save_safetensors(path, {{"inputs", good}, {"targets", good}});
    std::string const whole = test::get(path);
    for (unsigned const length : {0U, 1U, 7U, 8U, 50U, 200U, 3000U}) {
      test::put(path, whole.substr(0, length));
      refuses({});
    }
    test::put(path, whole + "x");
    refuses({"after the last tensor"});
    test::put(path, "not a safetensors file, but a text that is long enough");
    refuses({"header"});
    test::put(path, std::string(64, '\xff'));
    refuses({"header"});
    for (auto const& [header, words] : std::vector<std::pair<std::string, Words>>{
             {"[1]", {"not a JSON object"}},
             {"{\"inputs\": 3}", {"'inputs'", "not an object"}},
             {R"({"inputs":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"inputs":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})",
              {"twice"}},
             {R"({"inputs":{"dtype":"I65","shape":[1],"data_offsets":[0,8]}})", {"I65"}},
             {R"({"inputs":{"dtype":64,"shape":[1],"data_offsets":[0,8]}})", {"dtype is 64"}},
             {R"({"inputs":{"dtype":"I64","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,8]}})", {"too large"}},
             {R"({"inputs":{"dtype":"I64","shape":[-1],"data_offsets":[0,8]}})", {"-1"}},
             {R"({"inputs":{"dtype":"I64","shape":[1],"data_offsets":[8,0]}})", {"reversed"}},
             {R"({"inputs":{"dtype":"I64","shape":[1],"data_offsets":[0,9223372036854775807]}})", {"span"}},
             {R"({"inputs":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}})", {"cut short"}},
             {"{\"inp\xff\": 1}", {"UTF-8"}},
             {std::string(5000, '['), {"not a JSON object"}},
             {"{\"a\":" + std::string(5000, '['), {}},
         }) {
      test::put(path, with_header(header, 8));
      std::vector<std::string> plain;
      for (auto word : words) {
        std::replace(word.begin(), word.end(), '\'', '"');
        plain.push_back(word);
      }
      refuses(plain);
    }
    fs::remove(path);
    fs::create_directory(path);
    refuses({"directory"});
  }

  TEST_CASE("weights to start from") {
    Bench const bench;
    auto const path = bench.folder / "w.safetensors";
    Tensors const good = tensors_of(finished_run() / "checkpoint.safetensors");
    auto const refuses = [&](Words words) {
      words.push_back(path.string());
      bench.refuses_config(config_with(6, "init: {from: w.safetensors}"), 3, words);
    };
    auto const changed = [&](std::function<void(Tensors&)> const& change, Words const& words) {
      Tensors tensors = good;
      change(tensors);
      save_safetensors(path, tensors);
      refuses(words);
    };
    auto const named = [](Tensors& tensors, std::string const& name) -> Tensor& {
      return std::find_if(tensors.begin(), tensors.end(), [&](auto const& each) { return each.first == name; })->second;
    };
    refuses({"no such file"});
    for (double const wrong : {std::nan(""), std::numeric_limits<double>::infinity()})
      changed([&](Tensors& t) { named(t, "norm.weight") = Tensor::full({16}, wrong, DType::float32); },
              {"tensor 'norm.weight' holds", "at element 0"});
    changed([&](Tensors& t) { named(t, "norm.weight") = counting({16}, 9); }, {"'norm.weight' is int64"});
    changed([&](Tensors& t) { t.clear(); }, {"'token_embedding.weight' [", "'blocks.0.norm1.weight' [16] is missing; and 17 more"});
    changed(
        [&](Tensors& t) {
          std::erase_if(t, [](auto const& each) { return each.first == "norm.weight" || each.first == "blocks.0.mlp.up.bias"; });
          t.emplace_back("stranger", Tensor::full({2}, 1, DType::float32));
          named(t, "norm.bias") = Tensor::full({17}, 1, DType::float32);
        },
        {"'norm.weight' [16] is missing", "'blocks.0.mlp.up.bias' [64] is missing", "'stranger' [2] is not the model's",
         "'norm.bias' is [17], the model's is [16]"});
    auto const whole = test::get(finished_run() / "checkpoint.safetensors");
    for (auto const& damaged :
         {std::string(), whole.substr(0, 5), whole.substr(0, 300), whole.substr(0, whole.size() - 1), whole + "x", std::string(100, 'x')}) {
      test::put(path, damaged);
      refuses({});
    }
  }

  TEST_CASE("run folders to go on in") {
    struct Case {
      std::string name;
      std::function<void(fs::path const&)> damage;
      int code;
      Words words;
    };
    auto const rewrite = [](std::function<void(Tensors&, std::map<std::string, std::string>&)> change) {
      return [change](fs::path const& run) {
        auto const path = run / "checkpoint.safetensors";
        auto tensors = tensors_of(path);
        auto metadata = SafetensorsFile(path).metadata();
        change(tensors, metadata);
        save_safetensors(path, tensors, metadata);
      };
    };
    auto const content = [](std::string const& name, std::string const& bytes) {
      return [name, bytes](fs::path const& run) { test::put(run / name, bytes); };
    };
    auto const folder = [](std::string const& name) {
      return [name](fs::path const& run) {
        fs::remove(run / name);
        fs::create_directory(run / name);
      };
    };
    auto const missing = [](std::string const& name) { return [name](fs::path const& run) { fs::remove(run / name); }; };
    auto const cut = [](std::string const& name) {
      return [name](fs::path const& run) { test::put(run / name, test::get(run / name).substr(0, fs::file_size(run / name) / 2)); };
    };
    std::string const model = "checkpoint.safetensors", state = "state-2.safetensors", rows = "metrics.jsonl", config = "config.yaml";
    for (auto const &each : std::vector<Case>{
             {"empty checkpoint", content(model, ""), 3, {model, "empty"}},
             {"half a checkpoint", cut(model), 3, {model, "cut short"}},
             {"text as checkpoint", content(model, "a text, not a checkpoint"), 3, {model}},
             {"folder as checkpoint", folder(model), 3, {model, "directory"}},
             {"no metadata", rewrite([](auto&, auto&metadata) { metadata.clear(); }), 3, {model, "'step'"}},
             {"a step that is none", rewrite([](auto&, auto&metadata) { metadata["step"] = "two"; }), 3, {model, "'two'"}},
             {"another state's name",
              rewrite([](auto&, auto&metadata) { metadata["state"] = "state-1.safetensors"; }),
              3,
              {model, "state-1"}},
             {"another state's hash",
              rewrite([](auto&, auto&metadata) { metadata["state_sha256"] = std::string(64, '0'); }),
              3,
              {state, "is not the state"}},
             {"NaN",
              rewrite([](Tensors&tensors, auto&) {
                tensors.front().second = Tensor::full(tensors.front().second.shape(), std::nan(""), DType::float32);
              }),
              3,
              {model, "holds NaN"}},
             {"a tensor less", rewrite([](Tensors&tensors, auto&) { tensors.pop_back(); }), 3, {model, "is missing"}},
             {"a tensor more",
              rewrite([](Tensors&tensors, auto&) { tensors.emplace_back("x", Tensor::full({1}, 1, DType::float32)); }),
              3,
              {model, "'x' [1]"}},
             {"no state", missing(state), 3, {state}},
             {"half a state", cut(state), 3, {state}},
             {"empty state", content(state, ""), 3, {state}},
             {"folder as state", folder(state), 3, {state, "directory"}},
             {"rubbish in the rows", content(rows, "{\"step\":0}\nrubbish\n{\"step\":1}\n"), 3, {rows + ":2:"}},
             {"rows twice", content(rows, "{\"step\":0}\n{\"step\":0}\n"), 3, {rows + ":2:"}},
             {"rows lost", content(rows, "{\"step\":0}\n"), 3, {rows, "ends at step 0", "step 2"}},
             {"no rows", missing(rows), 3, {rows, "holds no rows", "step 2"}},
             {"folder as rows", folder(rows), 1, {rows, "directory"}},
             {"empty configuration", content(config, ""), 2, {config + ":1:1"}},
             {"rubbish as configuration", content(config, "\xff\xfe"), 2, {config + ":1:1"}},
             {"another configuration", content(config, "name: bad\nseed: 2\n"), 2, {"what differs", "seed"}},
             {"steps that are no number", content(config, config_with(5, "train: {steps: many}")), 2, {"what differs", "train.steps"}},
             {"no configuration", missing(config), 2, {config}},
             {"folder as configuration", folder(config), 2, {config, "is not a regular file"}},
             {"folder as lock", folder(".lock"), 1, {"directory"}},
         }) {
      CAPTURE(each.name);
      Bench const bench;
      test::put(bench.folder / "bad.yaml", config_with());
      fs::create_directories(bench.output);
      fs::copy(finished_run(), bench.run, fs::copy_options::recursive);
      fs::remove(bench.run / "summary.json");  // of a run that was cut off: else its rows are held against that
      each.damage(bench.run);
      bench.refuses(bench.command({"train.steps=4"}), each.code, and_also(each.words, bench.run.string()));
    }
  }

  TEST_CASE("run folders to sample from") {
    auto const whole = test::get(finished_run() / "checkpoint.safetensors");
    auto const tensors = tensors_of(finished_run() / "checkpoint.safetensors");
    auto const metadata = SafetensorsFile(finished_run() / "checkpoint.safetensors").metadata();
    Bench const bench;
    fs::create_directories(bench.output);
    auto const path = bench.run / "checkpoint.safetensors";
    auto const refuses = [&](int code, Words words) {
      words.push_back(bench.run.string());
      bench.refuses({"sample", bench.run.string()}, code, words);
    };
    fs::create_directory(bench.run);
    refuses(3, {"no checkpoint"});
    fs::remove(bench.run);
    fs::copy(finished_run(), bench.run, fs::copy_options::recursive);
    auto with = metadata;
    with.erase("data");
    save_safetensors(path, tensors, with);
    refuses(3, {"do not describe its data"});
    for (auto const* const data : {"many", "3", "[{}]", "[]", R"([{"name": "inputs"}])"}) {
      CAPTURE(data);
      with["data"] = data;
      save_safetensors(path, tensors, with);
      refuses(3, {"data"});
    }
    with["data"] = heed::Signature::tokens(3).text();
    save_safetensors(path, tensors, with);
    refuses(3, {"token_embedding.weight"});
    for (auto const* const tokenizer : {"", "{}", "[[[", "{\"kind\": \"sentences\", \"words\": 3}", "\"\xc3\xa9\""}) {
      CAPTURE(tokenizer);
      with = metadata;
      with["tokenizer"] = tokenizer;
      save_safetensors(path, tensors, with);
      refuses(*tokenizer == '\0' ? 2 : 3, {});
    }
    Tensors damaged = tensors;
    damaged.front().second = Tensor::full(damaged.front().second.shape(), std::nan(""), DType::float32);
    save_safetensors(path, damaged, metadata);
    refuses(3, {"damaged"});
    test::put(path, whole.substr(0, whole.size() / 2));
    refuses(3, {"cut short"});
    test::put(path, whole);
    test::put(bench.run / "config.yaml", "model: 3\n");
    refuses(2, {"config.yaml:1:"});
    fs::remove(bench.run / "config.yaml");
    refuses(2, {"config.yaml", "no such file"});
  }

  TEST_CASE("trainings that fail name the step and where") {
    Bench const bench;
    test::put(bench.folder / "bad.yaml", config_with());
    for (auto const& each : std::vector<std::pair<std::string, Words>>{
             {"train={steps: 50, optimizer: {kind: sgd, lr: 1.0e9}}", {"step ", ": ", "at element", "learning rate"}},
             {"train={steps: 50, optimizer: {kind: adamw, lr: 1.0e9}}", {"step ", ": ", "at element", "learning rate"}},
             {"init.std=1e38", {"step 0", "infinity", "from the start"}},
         }) {
      CAPTURE(each.first);
      fs::remove_all(bench.output);
      bench.refuses(bench.command({each.first}), 4, each.second);
      CHECK(!fs::exists(bench.run / "summary.json"));
    }
  }

  TEST_CASE("files that may not be read, folders that may not be written") {
    Bench const bench;
    for (auto const* const name : {"closed.yaml", "bad.yaml"}) test::put(bench.folder / name, config_with());
    test::put(bench.folder / "closed.txt", std::string(1000, 'a'));
    for (auto const* const name : {"closed.yaml", "closed.txt"}) REQUIRE(::chmod((bench.folder / name).c_str(), 0) == 0);
    REQUIRE(::chmod(bench.folder.path().c_str(), 0555) == 0);
    auto const as_nobody = test::run_heed({"list"}, drop_privileges);
    if (as_nobody.code == 0) {  // where that user may start the program
      bench.refuses({"run", bench.at("closed.yaml")}, 3, {bench.at("closed.yaml"), "Permission denied"}, drop_privileges);
      bench.refuses(bench.command({"data={kind: text, path: closed.txt}"}), 3, {bench.at("closed.txt"), "Permission denied"},
                    drop_privileges);
      bench.refuses(bench.command(), 1, {bench.run.string(), "Permission denied"}, drop_privileges);
    }
    REQUIRE(::chmod(bench.folder.path().c_str(), 0755) == 0);
  }

  TEST_CASE("terminals and logs that cannot be written") {
    Bench const bench;
    test::put(bench.folder / "bad.yaml", config_with());
    auto const full = [](int descriptor) { return [descriptor] { ::dup2(::open("/dev/full", O_WRONLY), descriptor); }; };
    auto arguments = bench.command();
    std::erase(arguments, "--quiet");
    CHECK(test::run_heed(arguments, full(STDERR_FILENO)).code == 0);  // a training outlives its log
    CHECK(test::run_heed({"run"}, full(STDERR_FILENO)).code == 2);
    bench.refuses({"list", "keys"}, 1, {"standard output: "}, full(STDOUT_FILENO));
  }
}
