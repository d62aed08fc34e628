#include "experiments/exchange/huggingface.hpp"

#include "autograd/random.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/files/safetensors.hpp"
#include "tests/difference.hpp"
#include "tests/experiments/evaluated.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/refusal.hpp"

// Folders of a GPT-2 as transformers leaves them: what is read, and what is refused by file and key. exchange has whole models.

TEST_SUITE("huggingface") {
  using namespace heed;
  namespace fs = std::filesystem;
  using json = test::Json;

  namespace {

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
    /// What was written is refused, in a line that says this.
    void refused(std::string const& phrase) const {
      test::check_refusal(test::refusal<FileError>([&] { read_gpt2(folder.path()); }), folder.path(), phrase);
    }

    test::Folder folder;
    Gpt2Config config;
    json keys;
    NamedTensors tensors;
  };

  }  // namespace

  TEST_CASE("folders with a wrong key are refused by file and key") {
    auto const refused = [](std::string const& key, json const& value, std::string const& phrase) {
      CAPTURE(key);
      Sample sample;
      sample.keys[key] = value;
      sample.write();
      sample.refused(phrase);
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
      sample.refused(fmt::format("config.json: {}: is missing; did you mean '{}s'?", key, key));
    }
  }

  TEST_CASE("files that are damaged or of another kind are refused by name") {
    Sample const sample;
    for (auto const& [text, phrase] : std::vector<test::Wrong>{{"", "is not JSON"},
                                                               {"{", "is not JSON"},
                                                               {"[]", "not an object"},
                                                               {"null", "not an object"},
                                                               {"{\"n_layer\": 1, \"n_layer\": 2}", "names \"n_layer\" twice"},
                                                               {"{\"model_type\": \"\xFF\"}", "UTF-8"},
                                                               {"{\"n_layer\": 1e999}", "out of range"},
                                                               {std::string("{}\0", 3), "a zero at byte 2"}}) {
      test::put(sample.folder / "config.json", text);
      sample.refused(phrase);
    }
    sample.write();
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
      Sample changed;
      change(changed);
      changed.write();
      changed.refused(phrase);
    }
    auto const weights = sample.folder / "model.safetensors";
    auto const whole = test::get(weights);
    test::put(weights, whole.substr(0, whole.size() - 1));
    sample.refused("cut short");
    test::put(weights, "PK\x03\x04 a zip");
    sample.refused("model.safetensors");
    fs::remove(weights);
    sample.refused("there is no such file");
    for (std::string const other : {"pytorch_model.bin", "tf_model.h5", "pytorch_model.bin.index.json", "model.safetensors.index.json"}) {
      test::put(sample.folder / other, "");
      sample.refused(other.ends_with("index.json") ? "max_shard_size" : "safe_serialization=True");
      sample.refused(other);
      fs::remove(sample.folder / other);
    }
    fs::remove(sample.folder / "config.json");
    test::put(weights, whole);
    sample.refused("config.json");
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

  TEST_CASE("embeddings beyond the vocabulary are tokens that no text has") {
    Sample sample;
    test::put(sample.folder / "heed_tokenizer.json", R"({"kind": "char", "characters": "abc"})");
    auto const run = open_run(sample.folder.path());
    CHECK(run.data["inputs"].added == std::vector<std::string>{"[3]", "[4]", "[5]", "[6]"});
    CHECK(tokenizer_of(run)->vocabulary() == 3);
    test::put(sample.folder / "text.txt", "abcabcabc");
    test::put_ids(sample.folder / "ids", {0, 1, 2, 0, 1, 2, 0, 1, 2});
    auto const loss = [&](char const* option, char const* file) {
      return test::loss_of(test::evaluated(sample.folder, sample.folder.path(), {option, sample.folder / file}));
    };
    CHECK(loss("--text", "text.txt") == loss("--ids", "ids"));
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
