#include <fmt/ranges.h>

#include "autograd/graph.hpp"
#include "autograd/random.hpp"
#include "experiments/exchange/huggingface.hpp"
#include "experiments/metric/text_loss.hpp"
#include "experiments/report/evaluation_folder.hpp"
#include "experiments/train/experiment.hpp"
#include "tests/difference.hpp"
#include "tests/experiments/evaluated.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/refusal.hpp"
#include "tests/rooms.hpp"

// Models that come from and go to other programs: tests/experiments/gpt2.py is a GPT-2 in plain PyTorch.

TEST_SUITE("exchange") {
  using namespace heed;
  namespace fs = std::filesystem;
  using test::evaluated, test::loss_of, test::put_ids;
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

  void check_losses(test::Folder const& folder, fs::path const& model, Words const& heeds, json const& wanted) {
    for (std::string const dtype : {"float32", "float64"}) {
      double const error = dtype == "float32" ? 1e-6 : 1e-10;
      double const loss = loss_of(evaluated(folder, model, test::joined(heeds, {"--dtype", dtype}))),
                   reference = wanted.at(dtype).get<double>();
      INFO("dtype ", dtype, ", loss ", loss);
      CHECK(std::abs(loss - reference) <= error * std::abs(reference));
    }
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
    auto const half = [](fs::path const& part) {
      test::put(part / "half", "half");
      throw Error("disk full");
    };
    CHECK_THROWS_WITH_AS(make_folder(broken, half), "disk full", Error);
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
    refused({1, 112}, 1, "token 112 at position 1");
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
    test::refuses({"evaluate", there, "--ids", at("beyond")}, 3, {at("beyond"), "token 112 at position 2", "112"});
    test::refuses({"evaluate", there, "--ids", at("negative")}, 3, {at("negative"), "token -2 at position 1"});
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

  TEST_CASE_FIXTURE(test::InFolder, "a tokenizer goes with its model, there and back") {
    std::string text;
    for (int i = 0; i < 80; ++i) text += fmt::format("{} green bottles häng on the wall\n", i * i);
    test::put(folder / "text.txt", text);
    test::put(folder / "held.txt", "9 bottles hang\n25 green walls\n");
    auto const held = (folder / "held.txt").string();
    int number = 0;
    for (std::string const tokenizer : {"{kind: bpe, size: 290}", "char", "byte"}) {
      CAPTURE(tokenizer);
      auto const from = test::trained(folder, "text",
                                      "data: {kind: text, path: text.txt, tokenizer: " + tokenizer +
                                          ", validation: 0.25}\nmodel: {kind: gpt, layers: 1, heads: 2, width: 16, context: 16}\n"
                                          "train: {steps: 5, batch: 4}\n");
      auto const there = folder / fmt::format("there{}", number++);
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

    auto const refused = [](fs::path const& model, std::string const& phrase) {
      test::check_refusal(test::refusal<FileError>([&] { read_gpt2(model); }), model, phrase);
    };
    // More tokens than the model has embeddings.
    test::change_json(pairs / "vocab.json", [](auto& vocabulary) { vocabulary["[more]"] = vocabulary.size(); });
    refused(pairs, "config.json: vocab_size: 290, but the tokenizer beside it has 291 tokens");
    fs::remove(pairs / "vocab.json");
    refused(pairs, "vocab.json: no such file, but there is merges.txt beside it");
    test::put(folder / "there1" / "heed_tokenizer.json", "{}");
    refused(folder / "there1", "heed_tokenizer.json: not a tokenizer");
  }
}
