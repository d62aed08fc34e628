#include <fmt/ranges.h>

#include "autograd/graph.hpp"
#include "autograd/random.hpp"
#include "experiments/exchange/huggingface.hpp"
#include "experiments/metric/text_loss.hpp"
#include "experiments/report/evaluation_folder.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/files/safetensors.hpp"
#include "tests/difference.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/refusal.hpp"
#include "tests/rooms.hpp"

// Models that come from and go to other programs: tests/experiments/gpt2.py is a GPT-2 in plain PyTorch.

TEST_SUITE("exchange") {
  using namespace heed;
  namespace fs = std::filesystem;
  using json = test::Json;

  namespace {

  using Words = std::vector<std::string>;

  /// A Python that has PyTorch; "": there is none.
  std::string const& python() {
    static std::string const found = [] {
      for (std::string const name : {"python3", "/usr/bin/python3"})
        if (std::system((name + " -c 'import torch' > /dev/null 2>&1").c_str()) == 0) return name;
      return std::string();
    }();
    return found;
  }

  bool no_torch() {
    if (!python().empty()) return false;
    MESSAGE("left out: python3 has no torch here (Debian: python3-torch)");
    return true;
  }

  /// What tests/experiments/gpt2.py prints.
  std::string torch(test::Folder const& folder, Words const& arguments) {
    std::string command = python() + " tests/experiments/gpt2.py";
    for (auto const& argument : arguments) command += fmt::format(" '{}'", argument);
    auto const output = folder / "torch.json";
    REQUIRE(std::system(fmt::format("{} > '{}'", command, output.string()).c_str()) == 0);
    return test::get(output);
  }

  /// The results that `heed evaluate MODEL …` saves.
  json evaluated(test::Folder const& folder, fs::path const& model, Words const& more) {
    auto const file = (folder / "results.json").string();
    test::run_well(test::joined({"evaluate", model.string(), "--quiet", "--save", file}, more));
    return test::json_of(file);
  }

  double loss_of(json const& results) { return results.at("metrics").at("loss").get<double>(); }

  void check_losses(test::Folder const& folder, fs::path const& model, Words const& heeds, json const& wanted) {
    for (std::string const dtype : {"float32", "float64"}) {
      double const error = dtype == "float32" ? 1e-6 : 1e-10;
      double const loss = loss_of(evaluated(folder, model, test::joined(heeds, {"--dtype", dtype}))),
                   reference = wanted.at(dtype).get<double>();
      INFO("dtype ", dtype, ", loss ", loss);
      CHECK(std::abs(loss - reference) <= error * std::abs(reference));
    }
  }

  /// Token ids as `--ids` reads them.
  void put_ids(fs::path const& path, std::vector<std::int32_t> const& ids) {
    test::put(path, std::string(reinterpret_cast<char const*>(ids.data()), ids.size() * sizeof(std::int32_t)));
  }

  std::vector<std::int32_t> random_ids(std::size_t count, std::uint64_t vocabulary) {
    Stream const draws(3, "ids");
    std::vector<std::int32_t> ids;
    for (std::uint64_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>(draws.below(i, vocabulary)));
    return ids;
  }

  /// The model of a run of one step, on the grammar; `more`: overrides. Its folder.
  fs::path trained(test::Folder const& folder, Words const& more = {}) {
    return test::trained(folder, "small", R"(
data: {kind: grammar, validation: 8, ngram_sentences: 20, longest: 15}
model: {kind: gpt, layers: 2, heads: 2, width: 16, context: 16}
init: {std: 0.3}
train: {steps: 1, batch: 2}
)",
                         more);
  }

  void exported(fs::path const& model, fs::path const& folder) {
    test::run_well({"export", model.string(), "--format", "huggingface", folder.string(), "--quiet"});
  }

  /// A GPT-2 of one layer in a folder, of which tests change a key or a tensor.
  struct Sample {
    Sample() {
      GptSettings& s = config.settings;
      s.layers = 1, s.heads = 2, s.width = 4, s.context = 6;
      config.vocabulary = 7;
      keys = json::parse(gpt2_config_text(config, DType::float32, std::nullopt));
      Stream const draws(1, "weights");
      for (Gpt2Tensor const& tensor : gpt2_tensors(config))
        tensors.emplace_back(tensor.name, Tensor::normal(tensor.stored(), draws.child(tensor.name), DType::float32));
      write();
    }
    void write() const {
      test::put(folder / "config.json", keys.dump());
      save_safetensors(folder / "model.safetensors", tensors);
    }
    NamedTensors::value_type& named(std::string const& name) {
      auto const found = std::ranges::find(tensors, name, &NamedTensors::value_type::first);
      REQUIRE(found != tensors.end());
      return *found;
    }

    test::Folder folder;
    Gpt2Config config;
    json keys;
    NamedTensors tensors;
  };

  void check_refusal(fs::path const& folder, std::string const& phrase) {
    test::check_refusal(test::refusal<FileError>([&] { read_gpt2(folder); }), folder, phrase);
  }

  }  // namespace

  TEST_CASE("a Hugging Face folder has PyTorch's loss, in either precision") {
    if (no_torch()) return;
    for (Words const& keys : {Words{}, Words{"prefix=1", "buffers=1"}, Words{"activation_function=gelu", "n_inner=40"},
                              Words{"activation_function=relu", "tie_word_embeddings=false", "prefix=1"},
                              Words{"activation_function=silu", "scale_attn_weights=false"}, Words{"dtype=float64", "n_head=1"},
                              Words{"dtype=float16"}, Words{"dtype=bfloat16", "n_layer=1"}, Words{"tokens=2"}, Words{"tokens=25"}}) {
      CAPTURE(fmt::format("{}", fmt::join(keys, " ")));
      test::Folder const folder;
      auto const model = folder / "gpt2", ids = model / "ids.bin";
      torch(folder, test::joined({"make", model.string()}, keys));
      auto const wanted = json::parse(torch(folder, {"loss", model.string(), ids.string(), "24", "7"}));
      check_losses(folder, model, {"--ids", ids.string()}, wanted.at(0));
      check_losses(folder, model, {"--ids", ids.string(), "--stride", "7", "--batch", "3"}, wanted.at(1));
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "PyTorch reads what is exported: the same loss") {
    if (no_torch()) return;
    auto const ids = folder / "ids.bin";
    put_ids(ids, random_ids(70, 112));
    int number = 0;
    for (Words const& keys : {Words{}, Words{"model.bias=false"}, Words{"dtype=float64"}, Words{"model.tie=false", "model.mlp_width=24"},
                              Words{"model.attention=dot", "model.activation=relu"}}) {
      auto const run = trained(folder, keys), there = folder / fmt::format("hf{}", number++);
      exported(run, there);
      check_losses(folder, run, {"--ids", ids.string()}, json::parse(torch(folder, {"loss", there.string(), ids.string(), "16"})).at(0));
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "exported and read back: the same bits") {
    auto const ids = folder / "ids.bin";
    put_ids(ids, random_ids(50, 112));
    int number = 0;
    for (Words const& keys : {Words{"model.dropout=0.1"}, Words{"dtype=float64", "model.activation=gelu_exact"},
                              Words{"model.tie=false", "model.mlp_width=24", "model.activation=silu"}, Words{"model.attention=dot"},
                              Words{"model.attention={scale: none}", "model.key_heads=2", "model.key_width=8"}}) {
      auto const run = trained(folder, keys);
      auto const there = folder / fmt::format("there{}", number), again = folder / fmt::format("again{}", number++);
      exported(run, there);
      TrainedModel const before = open_run(run), after = open_run(there);
      CHECK(after.foreign);
      CHECK(after.settings.dtype == before.settings.dtype);
      REQUIRE(after.parameters->all().size() == before.parameters->all().size());
      for (auto const& item : before.parameters->all()) {
        CAPTURE(item.first);
        REQUIRE(after.parameters->find(item.first) != nullptr);
        CHECK(test::same_bits(*after.parameters->find(item.first), item.second));
      }
      Words const how{"--ids", ids.string(), "--batch", "4"};
      CHECK(evaluated(folder, run, how).at("metrics") == evaluated(folder, there, how).at("metrics"));
      exported(there, again);
      CHECK(test::get(there / "model.safetensors") == test::get(again / "model.safetensors"));
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "biases that a model does not have are zeros") {
    auto const run = trained(folder, {"model.bias=false"}), there = folder / "there";
    exported(run, there);
    TrainedModel const before = open_run(run), after = open_run(there);
    for (auto const& item : after.parameters->all()) {
      CAPTURE(item.first);
      Tensor const* const own = before.parameters->find(item.first);
      if (own != nullptr) CHECK(test::same_bits(*own, item.second));
      if (own == nullptr) CHECK(std::ranges::all_of(item.second.to_vector(), [](double x) { return x == 0; }));
    }
    auto const ids = folder / "ids.bin";
    put_ids(ids, random_ids(50, 112));
    double const loss = loss_of(evaluated(folder, run, {"--ids", ids.string()}));
    CHECK(loss_of(evaluated(folder, there, {"--ids", ids.string()})) == doctest::Approx(loss).epsilon(1e-6));
  }

  TEST_CASE_FIXTURE(test::InFolder, "what GPT-2 has no words for is refused by its key") {
    for (auto const& [key, words] : std::vector<std::pair<std::string, Words>>{
             {"model.position=rotary", {"model.position", "rotary", "learned"}},
             {"model.attention=additive", {"model.attention.score: additive", "scaled_dot"}},
             {"model.attention={align: sparsemax}", {"model.attention.align: sparsemax", "softmax"}},
             {"model.attention=hard", {"model.attention.read: hard", "soft"}},
             {"model.attention={scale: inverse}", {"model.attention.scale: inverse"}},
             {"model.attention={gate: true, softcap: 5.0}", {"model.attention.gate: true", "model.attention.softcap"}},
             {"model.norm={kind: rms}", {"model.norm.kind: rms", "layer"}},
             {"model.norm={place: post}", {"model.norm.place: post", "pre"}},
             {"model.activation=swiglu", {"model.activation: swiglu"}},
             {"model.key_width=4", {"model.key_width: 4"}},
             {"model.key_heads=1", {"model.key_heads: 1"}},
         }) {
      auto const run = trained(folder, {key}).string();
      test::refuses({"export", run, "--format", "huggingface", (folder / "there").string()}, 2, test::joined(words, {run}));
      CHECK(!fs::exists(folder / "there"));
    }
    if (!test::has_room("recurrent")) return;
    auto const run = trained(folder, {"model={kind: recurrent_lm, width: 8, context: 16}"});
    test::refuses({"export", run.string(), "--format", "huggingface", (folder / "there").string()}, 2, {"model.kind: recurrent_lm"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "an export is whole or not there, and nothing is overwritten") {
    auto const run = trained(folder).string(), there = (folder / "a" / "b").string();
    exported(run, there + "/");
    test::refuses({"export", run, "--format", "huggingface", there}, 2, {there, "holds"});
    test::refuses({"export", run, "--format", "huggingface", run}, 2, {run, "holds"});
    test::refuses({"export", run, "--format", "huggingface", (folder / "small.yaml").string()}, 2, {"small.yaml", "no folder"});
    test::refuses({"export", run, "--format", "hugingface", there}, 2, {"--format", "did you mean 'huggingface'?"});
    test::refuses({"export", run, there}, 2, {"--format", "csv, huggingface, latex, tensorboard"});
    test::refuses({"export", run, "--format", "huggingface", "/proc/nothing"}, 1, {"/proc/nothing", "cannot be written"});
    fs::create_directory(folder / "empty");
    exported(run, folder / "empty");
    CHECK(fs::exists(folder / "empty" / "config.json"));

    auto const broken = folder / "broken";
    CHECK_THROWS_WITH_AS(make_folder(broken,
                                     [](fs::path const& part) {
                                       test::put(part / "half", "half");
                                       throw Error("disk full");
                                     }),
                         "disk full", Error);
    CHECK(folder.names() == Words{"a", "empty", "small", "small.yaml"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "the loss of a text: all tokens but the first, each once, with what a window has before it") {
    auto const run = open_run(trained(folder, {"dtype=float64"}));
    NoGrad const quiet;
    auto const ids = random_ids(41, 112);
    std::vector<Index> const tokens(ids.begin(), ids.end());
    Index const context = run.model->context(), last = std::ssize(tokens) - 1;
    for (Index const stride : {1, 3, 15, 16}) {
      CAPTURE(stride);
      double nats = 0;
      Index predicted = 0;
      for (Index begin = 0; predicted < last; begin += stride) {
        Index const end = std::min(begin + context, last);
        std::vector<Index> const window(tokens.begin() + begin, tokens.begin() + end);
        Tensor const logits = run.model->logits({{"inputs", Tensor::of(window, {1, end - begin})}}, {});
        for (; predicted < end; ++predicted) {
          Tensor const row = logits.viewed({end - begin, 112}).rows(predicted - begin, 1);
          nats += cross_entropy(row, Tensor::full({1}, static_cast<double>(heed::at(tokens, predicted + 1)), DType::int64)).item();
        }
      }
      for (Index const rows : {1, 2, 100}) {
        Index seen = 0;
        TextLoss const found = text_loss(*run.model, tokens, stride, rows, [&](Index now) { seen = now; });
        CHECK(found.tokens == last);
        CHECK(seen == last);
        CHECK(found.nats == doctest::Approx(nats).epsilon(1e-12));
      }
    }
    auto const refused = [&](std::vector<Index> const& text, Index stride, std::string const& message) {
      test::check_holds(test::refusal([&] { text_loss(*run.model, text, stride, 1); }), {message});
    };
    refused({1}, 1, "too short");
    refused({1, 112}, 1, "token 112 at place 1");
    refused(tokens, 17, "stride of 17");
  }

  TEST_CASE_FIXTURE(test::InFolder, "a run's held-out text has the loss of its validation, and figures a byte and a word") {
    std::string text;
    for (int i = 0; i < 60; ++i) text += fmt::format("{} green bottles, häng\n", i * i);
    test::put(folder / "text.txt", text);
    auto const run = test::trained(folder, "text", R"(
data: {kind: text, path: text.txt, tokenizer: byte, validation: 0.25}
model: {kind: gpt, layers: 1, heads: 2, width: 16, context: 16}
train: {steps: 30, batch: 4, ema: 0.5}
)");
    auto const held_out = text.substr(static_cast<std::size_t>(static_cast<double>(text.size()) * 0.75));
    test::put(folder / "held.txt", "\xEF\xBB\xBF" + held_out);
    for (std::string const weights : {"average", "last"}) {
      auto const found = evaluated(folder, run, {"--text", (folder / "held.txt").string(), "--weights", weights});
      auto const usual = evaluated(folder, run, {"--weights", weights});
      CHECK(loss_of(found) == doctest::Approx(loss_of(usual)).epsilon(1e-6));
      auto const& metrics = found.at("metrics");
      CHECK(found.at("text").at("bytes") == static_cast<double>(held_out.size()));
      CHECK(found.at("tokens").get<double>() == static_cast<double>(held_out.size()) - 1);
      for (std::string const name : {"perplexity", "bits_per_byte", "perplexity_per_byte"})
        CHECK(metrics.at(name).get<double>() == doctest::Approx(usual.at("metrics").at(name).get<double>()).epsilon(1e-5));
      // The held-out words' tokens are all, of which those of a text but its first are predicted.
      auto const a_word = [](auto const& of) { return std::log(of.at("perplexity_per_word").template get<double>()); };
      double const predicted = static_cast<double>(held_out.size() - 1) / static_cast<double>(held_out.size());
      CHECK(a_word(metrics) == doctest::Approx(a_word(usual.at("metrics")) * predicted).epsilon(1e-5));
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "texts and numbers that cannot be evaluated are refused") {
    auto const run = trained(folder).string(), there = (folder / "there").string();
    exported(run, there);
    auto const at = [&](std::string const& name) { return (folder / name).string(); };
    put_ids(at("ids"), {1, 2, 3});
    put_ids(at("beyond"), {1, 2, 112});
    put_ids(at("negative"), {1, -2, 3});
    put_ids(at("one"), {1});
    test::put(at("odd"), "12345");
    test::put(at("empty"), "");
    test::put(at("unknown"), "the zebra");
    test::refuses({"evaluate", there}, 2, {there, "--text FILE"});
    test::refuses({"evaluate", there, "--ids", at("beyond")}, 3, {at("beyond"), "token 112 at place 2", "112"});
    test::refuses({"evaluate", there, "--ids", at("negative")}, 3, {at("negative"), "token -2 at place 1"});
    test::refuses({"evaluate", there, "--ids", at("one")}, 3, {at("one"), "too short: 1 tokens"});
    test::refuses({"evaluate", there, "--ids", at("odd")}, 3, {at("odd"), "5 bytes"});
    test::refuses({"evaluate", there, "--ids", at("empty")}, 3, {at("empty")});
    test::refuses({"evaluate", there, "--ids", at("nowhere")}, 3, {at("nowhere")});
    test::refuses({"evaluate", run, "--text", at("unknown")}, 3, {at("unknown"), "'zebra'"});
    test::refuses({"evaluate", run, "--ids", at("ids"), "--stride", "17"}, 2, {"--stride", "17", "16"});
    test::refuses({"evaluate", run, "--stride", "3"}, 2, {"--stride", "--text"});
    test::refuses({"evaluate", run, "--ids", at("ids"), "--text", at("ids")}, 2, {"--ids", "--text"});
    test::refuses({"evaluate", run, "--ids", at("ids"), "--metrics", "loss"}, 2, {"--metrics"});
    test::refuses({"evaluate", run, "--ids", at("ids"), "--split", "test"}, 2, {"--split"});
    test::refuses({"evaluate", run, "--ids", at("ids"), "--beam", "3"}, 2, {"--beam"});
    test::refuses({"evaluate", run, "--ids", at("ids"), "--dtype", "float16"}, 2, {"--dtype", "float16"});
    test::refuses({"evaluate", run, "--ids", at("ids"), "--weights", "average"}, 2, {"--weights"});
    test::refuses({"inspect", there, "--text", "the dogs"}, 2, {"--save", there});
    auto const bert = trained(folder, {"model={kind: bert, layers: 1, heads: 1, width: 8, context: 16}"}).string();
    test::refuses({"evaluate", bert, "--ids", at("ids")}, 2, {bert, "bert", "next token"});
  }

  TEST_CASE("folders with a wrong key are refused by file and key") {
    auto const refused = [](std::string const& key, json const& value, std::string const& phrase) {
      CAPTURE(key);
      Sample sample;
      sample.keys[key] = value;
      sample.write();
      check_refusal(sample.folder.path(), phrase);
    };
    for (char const* const phrase : {"config.json: model_type: is 'bert'", "heed reads gpt2"}) refused("model_type", "bert", phrase);
    for (int const layers : {0, -1}) refused("n_layer", layers, "n_layer: wants an integer ≥ 1");
    for (json const& value : {json(1.5), json("1"), json(1e300), json(18446744073709551615U), json::array({1})})
      refused("n_layer", value, "n_layer: wants an integer");
    for (std::string const key : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention"})
      refused(key, true, key + ": true");
    refused("model_type", 2, "model_type: wants a word");
    refused("n_layer", 1000000, "n_layer: wants an integer ≥ 1 and ≤ 1000");
    refused("n_layer", 2, "transformer.h.1.ln_1.weight is missing");
    refused("n_head", 3, "n_head: 3 heads do not divide n_embd, 4");
    refused("n_head", true, "n_head: wants an integer");
    refused("n_embd", 8, "transformer.wte.weight is [7, 4], where config.json says [7, 8]");
    refused("n_positions", 5, "n_ctx: 6 differs from n_positions, 5");
    refused("n_ctx", 5, "n_ctx: 5 differs from n_positions, 6");
    refused("n_inner", 8, "mlp.c_fc.weight is [4, 16], where config.json says [4, 8]");
    refused("n_inner", "8", "n_inner: wants an integer");
    refused("vocab_size", 8, "transformer.wte.weight is [7, 4], where config.json says [8, 4]");
    refused("activation_function", "tanh", "activation_function: 'tanh' is not among those that heed has: gelu_new");
    refused("activation_function", 3, "activation_function: wants a word");
    refused("layer_norm_epsilon", 1e-6, "layer_norm_epsilon: is '1e-06': heed's layer norm has 1e-05");
    refused("layer_norm_epsilon", "1e-5", "layer_norm_epsilon");
    refused("add_cross_attention", "no", "add_cross_attention: wants true or false, but found");
    refused("scale_attn_weights", 1, "scale_attn_weights: wants true or false");
    refused("pruned_heads", {{"0", {1}}}, "pruned_heads");
    refused("quantization_config", {{"bits", 4}}, "quantization_config");
    refused("tie_word_embeddings", false, "lm_head.weight is missing");
    for (std::string const key : {"model_type", "n_layer", "n_head", "n_embd", "n_positions", "vocab_size", "activation_function"}) {
      Sample sample;
      sample.keys.erase(key);
      sample.keys[key + "s"] = 1;
      sample.write();
      check_refusal(sample.folder.path(), fmt::format("config.json: {}: is missing; did you mean '{}s'?", key, key));
    }
  }

  TEST_CASE("files that are damaged or of another kind are refused by name") {
    for (auto const& [text, phrase] :
         std::vector<std::pair<std::string, std::string>>{{"", "is not JSON"},
                                                          {"{", "is not JSON"},
                                                          {"[]", "not an object"},
                                                          {"null", "not an object"},
                                                          {"{\"n_layer\": 1, \"n_layer\": 2}", "names \"n_layer\" twice"},
                                                          {"{\"model_type\": \"\xFF\"}", "UTF-8"},
                                                          {"{\"n_layer\": 1e999}", "out of range"},
                                                          {std::string("{}\0", 3), "a zero at byte 2"}}) {
      Sample const sample;
      test::put(sample.folder / "config.json", text);
      check_refusal(sample.folder.path(), phrase);
    }
    using Change = std::function<void(Sample&)>;
    auto const adds = [](std::string const& name, Shape const& shape) {
      return Change([=](Sample& s) { s.tensors.emplace_back(name, Tensor::ones(shape, DType::float32)); });
    };
    auto const sets = [](std::string const& name, Shape const& shape, DType dtype = DType::float32) {
      return Change([=](Sample& s) { s.named("transformer." + name).second = Tensor::ones(shape, dtype); });
    };
    for (auto const& [change, phrase] : std::vector<std::pair<Change, std::string>>{
             {[](Sample& s) { std::erase_if(s.tensors, [](auto const& item) { return item.first == "transformer.h.0.mlp.c_fc.bias"; }); },
              "transformer.h.0.mlp.c_fc.bias is missing"},
             {[](Sample& s) { s.named("transformer.ln_f.bias").first = "transformer.ln_g.bias"; },
              "transformer.ln_g.bias is no part of a GPT-2"},
             {adds("score.weight", {2, 4}), "score.weight is no part"},
             {adds("wte.weight", {7, 4}), "both with and without"},
             {adds("lm_head.weight", {7, 4}), "tie_word_embeddings"},
             {sets("h.0.mlp.c_fc.weight", {16, 4}), "c_fc.weight is [16, 4], where config.json says [4, 16]"},
             {sets("h.0.attn.c_attn.bias", {1, 12}), "[12]"},
             {sets("ln_f.weight", {4}, DType::int64), "holds integers"},
             {[](Sample& s) { s.tensors.clear(); }, "and 13 more"},
         }) {
      Sample sample;
      change(sample);
      sample.write();
      check_refusal(sample.folder.path(), phrase);
    }
    Sample const sample;
    auto const weights = sample.folder / "model.safetensors";
    auto const whole = test::get(weights);
    test::put(weights, whole.substr(0, whole.size() - 1));
    check_refusal(sample.folder.path(), "cut short");
    test::put(weights, "PK\x03\x04 a zip");
    check_refusal(sample.folder.path(), "model.safetensors");
    fs::remove(weights);
    check_refusal(sample.folder.path(), "there is no such file");
    for (std::string const other : {"pytorch_model.bin", "tf_model.h5", "pytorch_model.bin.index.json", "model.safetensors.index.json"}) {
      test::put(sample.folder / other, "");
      check_refusal(sample.folder.path(), other.ends_with("index.json") ? "max_shard_size" : "safe_serialization=True");
      check_refusal(sample.folder.path(), other);
      fs::remove(sample.folder / other);
    }
    fs::remove(sample.folder / "config.json");
    test::put(weights, whole);
    check_refusal(sample.folder.path(), "config.json");
  }

  TEST_CASE("numbers that are not finite are refused, whole files with names of either kind are read") {
    Sample sample;
    REQUIRE(is_huggingface_folder(sample.folder.path()));
    auto const first = read_gpt2(sample.folder.path()).tensors;
    for (auto& [name, tensor] : sample.tensors)
      if (name.starts_with("transformer.")) name.erase(0, std::string("transformer.").size());
    sample.tensors.emplace_back("h.0.attn.bias", Tensor::ones({1, 1, 6, 6}, DType::float32));
    sample.tensors.emplace_back("h.0.attn.masked_bias", Tensor::scalar(-1e4, DType::float32));
    sample.tensors.emplace_back("lm_head.weight", sample.tensors.front().second);
    sample.write();
    auto const second = read_gpt2(sample.folder.path()).tensors;
    REQUIRE(first.size() == second.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
      CHECK(first[i].first == second[i].first);
      CHECK(test::same_bits(first[i].second, second[i].second));
    }
    sample.named("ln_f.bias").second = Tensor::full({4}, std::nan(""), DType::float32);
    sample.write();
    test::check_holds(test::refusal<FileError>([&] { open_run(sample.folder.path()); }), {"norm.bias"});
  }

  TEST_CASE_FIXTURE(test::InFolder, "a tokenizer goes with its model, there and back") {
    std::string text;
    for (int i = 0; i < 80; ++i) text += fmt::format("{} green bottles häng on the wall\n", i * i);
    test::put(folder / "text.txt", text);
    test::put(folder / "held.txt", "9 bottles hang\n25 green walls\n");
    auto const run = [&](std::string const& tokenizer) {
      return test::trained(folder, "text",
                           fmt::format(R"(
data: {{kind: text, path: text.txt, tokenizer: {}, validation: 0.25}}
model: {{kind: gpt, layers: 1, heads: 2, width: 16, context: 16}}
train: {{steps: 5, batch: 4}}
)",
                                       tokenizer));
    };
    auto const held = (folder / "held.txt").string();
    int number = 0;
    for (std::string const tokenizer : {"{kind: bpe, size: 290}", "char", "byte"}) {
      CAPTURE(tokenizer);
      auto const from = run(tokenizer), there = folder / fmt::format("there{}", number++);
      exported(from, there);
      bool const pairs = tokenizer.starts_with('{');
      CHECK(fs::exists(there / "heed_tokenizer.json") != pairs);
      for (std::string const name : {"vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json"})
        CHECK(fs::exists(there / name) == pairs);
      CHECK(open_run(there).tokenizer == open_run(from).tokenizer);
      Words const how{"--text", held, "--batch", "2"};
      CHECK(evaluated(folder, there, how).at("metrics") == evaluated(folder, from, how).at("metrics"));
      auto const said = [](fs::path const& model) {
        return test::run_well({"sample", model.string(), "--prompt", "9 green", "--tokens", "20"}).output;
      };
      CHECK(said(from) == said(there));
      test::refuses({"evaluate", there.string()}, 2, {there.string(), "--text"});
    }
    auto const pairs = folder / "there0";
    auto const keys = test::json_of(pairs / "config.json");
    CHECK(keys.at("eos_token_id") == keys.at("vocab_size").get<int>() - 1);
    CHECK(test::json_of(pairs / "tokenizer_config.json").at("eos_token") == "<|endoftext|>");

    // More tokens than the model has embeddings.
    test::change_json(pairs / "vocab.json", [](auto& vocabulary) { vocabulary["[more]"] = vocabulary.size(); });
    check_refusal(pairs, "config.json: vocab_size: 290, but the tokenizer beside it has 291 tokens");
    fs::remove(pairs / "vocab.json");
    check_refusal(pairs, "vocab.json: no such file, but there is merges.txt beside it");
    test::put(folder / "there1" / "heed_tokenizer.json", "{}");
    check_refusal(folder / "there1", "heed_tokenizer.json: not a tokenizer");
  }

  TEST_CASE("embeddings beyond the vocabulary are tokens that no text has") {
    Sample sample;
    test::put(sample.folder / "heed_tokenizer.json", R"({"kind": "char", "characters": "abc"})");
    auto const run = open_run(sample.folder.path());
    CHECK(run.data["inputs"].added == Words{"[3]", "[4]", "[5]", "[6]"});
    CHECK(tokenizer_of(run)->vocabulary() == 3);
    test::put(sample.folder / "text.txt", "abcabcabc");
    put_ids(sample.folder / "ids", {0, 1, 2, 0, 1, 2, 0, 1, 2});
    CHECK(loss_of(evaluated(sample.folder, sample.folder.path(), {"--text", (sample.folder / "text.txt").string()})) ==
          loss_of(evaluated(sample.folder, sample.folder.path(), {"--ids", (sample.folder / "ids").string()})));
  }

  TEST_CASE("GPT-2's smallest has 124 million parameters") {
    Gpt2Config config;
    config.settings.layers = 12, config.settings.heads = 12, config.settings.width = 768, config.settings.context = 1024;
    config.vocabulary = 50257;
    Index count = 0;
    for (Gpt2Tensor const& tensor : gpt2_tensors(config)) count += tensor.stored().elements();
    CHECK(count == 124'439'808);
    auto parameters = Parameters::counted(DType::float32);
    Choice const model{model_choice().options, "gpt", std::make_shared<GptSettings>(config.settings)};
    make_model(model, parameters, Signature::tokens(config.vocabulary));
    CHECK(parameters.elements() == count);
  }
}
