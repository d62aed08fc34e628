// Attention maps on the page of an ablation.

#include "experiments/report/html.hpp"
#include "tests/experiments/finished_ablation.hpp"

TEST_SUITE("report_maps") {
  using namespace heed;
  using Json = test::OrderedJson;
  using test::Finished, test::has;
  namespace fs = std::filesystem;

  TEST_CASE_FIXTURE(Finished, "attention maps: one trial an arm, thinned to fit") {
    put_maps(0, {0, 10, 20});
    put_maps(1, {40});
    auto material = read_material(path);
    auto const json = Json::parse(attention_maps(material, 100'000));
    REQUIRE(json["arms"].size() == 2);
    CHECK(json["arms"][0]["name"] == "plain");
    CHECK(json["arms"][0]["seed"] == "1");
    CHECK(json["arms"][0]["steps"].size() == 3);
    CHECK(json["arms"][1]["steps"][0]["step"] == 40);
    CHECK(json["texts"] == Json({{"w0", "</script>", "w2", "w3"}, {"w4", "w5", "w6", "w7"}}));
    auto const& layer = json["arms"][0]["steps"][2]["layers"][0];
    CHECK(json["arms"][0]["steps"][2]["examples"][1] == Json({{"inputs", {{"text", 1}, {"length", 4}}}}));
    CHECK(layer["name"] == "layer 0");
    CHECK(layer["of"] == Json({"inputs", "inputs"}));
    CHECK(layer["heads"] == 2);
    CHECK(layer["peaks"].size() == 4);
    CHECK(layer["peaks"][0].get<double>() == doctest::Approx(0.3).epsilon(1e-3));
    std::string bytes;  // weight i/10 of key 0, as the root of its share of the largest
    for (int map = 0; map < 4; ++map)
      for (int query = 0; query < 4; ++query)
        for (int key = 0; key < 4; ++key)
          bytes += static_cast<char>(key == 0 ? std::lround(255 * std::sqrt(query * 0.1 / layer["peaks"][0].get<double>())) : 0);
    CHECK(layer["weights"] == base64(bytes));

    auto const small = attention_maps(material, 900);
    CHECK(small.size() <= 900);
    CHECK(Json::parse(small)["arms"][0]["steps"].back()["step"] == 20);
    CHECK(attention_maps(material, 10).empty());
    CHECK(has(material.warnings.back(), "too large"));

    auto const html = report();
    CHECK(html.find("</script>") == html.rfind("</script>", html.find("</script>\n</section>")));  // no token ends the data
    CHECK(has(html, "\\u003c/script>"));
  }

  TEST_CASE_FIXTURE(Finished, "maps of pictures: each picture once, in bytes, and how many fields are in a row") {
    auto const attention = path / "arm0-seed1-0/attention";
    fs::create_directories(attention);
    std::vector<NpyArray> const arrays{NpyArray::of("inputs.labels", {"<bos>", "a", "<bos>", "b"}),
                                       NpyArray::of("image.pixels", Tensor::of(std::vector<Index>{0, 4, 8, 16, 0, 4, 8, 16}, {2, 1, 2, 2})),
                                       NpyArray::of("layer0.weights", Tensor::full({2, 1, 2, 4}, 0.25, DType::float32)),
                                       NpyArray::of("layer0.of", {"attention", "inputs", "image"}),
                                       NpyArray::of("layer0.across", Tensor::full({}, 2, DType::int64))};
    write_npz(attention / "step-000000.npz", arrays);
    auto material = read_material(path);
    auto const json = Json::parse(attention_maps(material, 100'000));
    CHECK(json["pictures"] == Json::parse("[{\"channels\": 1, \"height\": 2, \"width\": 2, \"pixels\": \"AECA/w==\"}]"));
    auto const& step = json["arms"][0]["steps"][0];
    CHECK(step["layers"][0]["across"] == 2);
    for (std::size_t const example : {0, 1}) CHECK(step["examples"][example]["image"]["picture"] == 0);
    refuse_map(arrays, NpyArray::of("layer0.across", Tensor::full({}, 3, DType::int64)), "layer0.across does not divide its keys");
    refuse_map(arrays, NpyArray::of("image.pixels", Tensor::zeros({1, 1, 2, 2}, DType::int64)),
               "image.pixels is not [examples, channels, height, width]");
  }

  TEST_CASE_FIXTURE(Finished,
                    "maps from a source to a target: texts of each, as long as they are, and what looks at what; layers in their order") {
    auto const attention = path / "arm0-seed1-0/attention";
    fs::create_directories(attention);
    auto const uniform = [](Index n, Index m) { return Tensor::full({2, 1, n, m}, 1.0 / static_cast<double>(m), DType::float32); };
    auto const lengths = [](Index a, Index b) { return Tensor::of(std::vector<Index>{a, b}, {2}); };
    std::vector<NpyArray> arrays{
        NpyArray::of("inputs.labels", {"<bos>", "a", "<bos>", "<pad>"}), NpyArray::of("inputs.lengths", lengths(2, 1)),
        NpyArray::of("source.labels", {"ein", "x", "<eos>", "so", "<eos>", "<pad>"}), NpyArray::of("source.lengths", lengths(3, 2))};
    for (int const layer : {0, 2, 10}) {
      bool const encodes = layer == 0;
      arrays.push_back(NpyArray::of(fmt::format("layer{}.weights", layer), uniform(encodes ? 3 : 2, 3)));
      arrays.push_back(
          NpyArray::of(fmt::format("layer{}.of", layer), {encodes ? "encoder" : "decoder", encodes ? "source" : "inputs", "source"}));
    }
    write_npz(attention / "step-000000.npz", arrays);
    auto material = read_material(path);
    auto const json = Json::parse(attention_maps(material, 100'000));
    auto const& step = json["arms"][0]["steps"][0];
    auto const text = [&](std::size_t example, char const* part) {
      return json["texts"][step["examples"][example][part]["text"].get<std::size_t>()];
    };
    CHECK(text(0, "inputs") == Json({"<bos>", "a"}));
    CHECK(text(0, "source") == Json({"ein", "x", "<eos>"}));
    CHECK(text(1, "inputs") == Json::array({"<bos>"}));
    CHECK(text(1, "source") == Json({"so", "<eos>"}));
    CHECK(step["examples"][1]["source"]["length"] == 2);
    CHECK(step["layers"].size() == 3);
    CHECK(step["layers"][0]["of"] == Json({"source", "source"}));
    CHECK(step["layers"][1]["name"] == "layer 2: decoder");
    CHECK(step["layers"][2]["name"] == "layer 10: decoder");
    CHECK(step["layers"][2]["of"] == Json({"inputs", "source"}));

    refuse_map(arrays, NpyArray::of("layer2.of", {"decoder", "inputs"}), "layer2.of is not a name and two parts");
    refuse_map(arrays, NpyArray::of("source.labels", {"a", "b", "c"}), "source.labels is not of 2 texts");
    refuse_map(arrays, NpyArray::of("source.lengths", lengths(4, 1)), "source.lengths do not fit its labels");
    refuse_map(arrays, NpyArray::of("layer2.weights", Tensor::zeros({2, 2}, DType::float32)),
               "layer2.weights is not [examples, heads, queries, keys]");
  }

  TEST_CASE_FIXTURE(Finished, "a long row is told as what it is") {
    put_maps(0, {0}, 100);
    auto material = read_material(path);
    auto const json = Json::parse(attention_maps(material, 1'000'000));
    auto const& step = json["arms"][0]["steps"][0];
    CHECK(json["texts"][0].size() == 64);
    CHECK(step["examples"][0]["inputs"]["length"] == 100);
    CHECK(step["layers"][0]["queries"] == 64);
    CHECK(step["layers"][0]["places"] == Json({100, 100}));
  }

  TEST_CASE_FIXTURE(Finished, "a damaged map is a warning, and the rest is shown") {
    put_maps(0, {0, 10});
    auto const map = path / "arm0-seed1-0/attention/step-000010.npz";
    test::put(map, test::flipped(test::get(map), fs::file_size(map) / 2));
    auto const html = report();
    CHECK(has(html, "step-000010.npz"));
    CHECK(has(html, "is damaged"));
  }
}
