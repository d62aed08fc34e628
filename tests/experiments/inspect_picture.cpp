// heed inspect of a model that sees pictures.

#include "experiments/commands/inspect.hpp"
#include "nn/files/npz.hpp"
#include "tests/experiments/inspected_run.hpp"

TEST_SUITE("inspect_picture") {
  using namespace heed;

  TEST_CASE_FIXTURE(test::InFolder, "a picture of the data: what each word of its caption looked at, as the fields lie, and drawn") {
    std::filesystem::create_directory(folder / "see");
    test::put(folder / "see/config.yaml",
              "name: see\ndtype: float64\ndata: {kind: glyphs, validation: 5}\ninit: {std: 0.5}\n"
              "model: {kind: captioner, channels: 8, width: 8, embedding: 8, context: 9, attention: bahdanau}\n");
    Experiment settings;
    fill(load(folder / "see/config.yaml"), settings);
    auto const data = open_dataset(settings.data, {});
    Parameters parameters(1, DType::float64, settings.init);
    auto const model = make_model(settings.model, parameters, data->signature());
    Checkpoint checkpoint;
    checkpoint.parameters = parameters.all();
    checkpoint.metadata = {{"data", data->signature().text()}, {"tokenizer", data->tokenizer()}};
    save_checkpoint(folder / "see", checkpoint);

    InspectOptions options;
    options.run = folder / "see";
    auto const shown = &test::InspectedRun::shown;
    auto const refused = [&](char const* message) { CHECK_THROWS_WITH_AS(shown(options), doctest::Contains(message), ConfigError); };
    refused("--row: is needed: number of a held-out image, from 1");
    options.row = 6;
    refused("--row: there is no image 6: the data hold out 5");
    options.row = 3;
    options.target = "red circle";
    options.picture = folder / "where.svg";
    auto const page = shown(options);
    CHECK(page.find("reference:        " + *data->original(2).reference) != page.npos);
    CHECK(page.find("the model writes") == page.npos);
    for (char const* const word : {"\n  red ", "\n  circle ", "\n  <eos> "}) CHECK(page.find(word) != page.npos);
    CHECK(std::filesystem::file_size(folder / "where.svg") > 1000);
    auto const arrays = heed::read_npz(folder / "see/attention.npz");
    CHECK(arrays.at("image.pixels").tensor().to_vector() == data->validation(2, 1, 9)["image"].to_vector());
    CHECK(arrays.at("layer0.across").tensor().item() == 4);
    CHECK(arrays.at("layer0.of").texts() == std::vector<std::string>{"attention", "inputs", "image"});
    CHECK(arrays.at("layer0.weights").tensor().shape() == Shape{1, 3, 16});
    CHECK(arrays.at("inputs.labels").texts() == std::vector<std::string>{"<bos>", "red", "circle"});
    options.target.reset();
    CHECK(shown(options).find("the model writes: ") != std::string::npos);
    options.picture = folder / "where.txt";
    refused("--picture: wants a file that ends in .svg, .pdf, .png or .html");
    options.picture.clear();
    options.text = "red";
    refused("--text: ");
  }
}
