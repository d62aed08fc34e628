#include <fmt/ranges.h>

#include "experiments/data/open.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/metric/alignment_error.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "tests/folder.hpp"
#include "tests/nn/choice.hpp"

TEST_SUITE("pictures") {
  using namespace heed;

  namespace {

  using test::Keys;

  std::unique_ptr<Dataset> pictures(std::string const& kind, Keys const& keys = {}, std::uint64_t seed = 1,
                                    std::string const& held_out = "validation") {
    return open_dataset(test::chosen(choice_of<DataKind>(), kind, keys), {"", "", seed, true, held_out});
  }

  std::vector<std::string> caption(Dataset const& data, Batch const& batch, Index row) {
    auto const tokens = batch["inputs"].rows(row, 1).data<std::int64_t>();
    auto const length = at(batch["lengths"].data<std::int64_t>(), row);
    return test::split_words(data.facts().tokenizer->decode({tokens.begin() + 1, tokens.begin() + length}));
  }

  /// The mean of a channel over the pixels that a word comes from.
  double mean_of(Batch const& batch, Index row, Index channel, std::vector<Link> const& links, Index word) {
    Tensor const& image = batch["image"];
    double sum = 0, count = 0;
    for (auto const& link : links) {
      if (link.target != word) continue;
      sum += image.at((row * image.size(1) + channel) * image.size(2) * image.size(3) + link.source);
      count += 1;
    }
    return sum / count;
  }

  /// A digit of every kind, whose mean level is its value + 1. Those of another `kind` are other ones.
  std::string plain_digits(int kind = 0) {
    std::string text = "# a comment\n";
    for (int digit = 0; digit < 10; ++digit) {
      for (int i = 0; i < 64; ++i) text += fmt::format("{},", digit + 1 + (i < kind ? 1 : i < 2 * kind ? -1 : 0));
      text += fmt::format("{}\n", digit);
    }
    return text;
  }

  }  // namespace

  TEST_CASE("glyphs: a caption tells colours and shapes in reading order, each of where it is") {
    auto const data = pictures("glyphs", {{"noise", 0.0}, {"tells", std::vector<std::string>{"place", "colour", "shape"}}});
    auto const given = data->signature();
    CHECK(given["image"].shape == std::vector<Index>{3, 32, 32});
    CHECK(given["image"].classes == 256);
    CHECK(given["inputs"].longest == 13);
    Batch const batch = data->validation(0, 200, 13);
    auto const links = held_out(*data, 0, 200, 13).links;
    CHECK(batch["image"].shape() == Shape{200, 3, 32, 32});
    CHECK(!batch.has("source"));
    std::map<std::string, std::vector<double>> light{{"red", {230, 50, 50}}, {"green", {60, 200, 80}}, {"blue", {70, 110, 250}}};
    std::set<std::string> seen;
    std::set<std::size_t> lengths;
    int lit = 0;
    for (Index row = 0; row < 200; ++row) {
      auto const words = caption(*data, batch, row);
      auto const& of_row = at(links, row);
      lengths.insert(words.size());
      REQUIRE(words.size() % 3 == 0);
      Index before = -1;
      for (std::size_t thing = 0; thing < words.size() / 3; ++thing) {
        Index const cell = (words[3 * thing][0] - 'a') * 4 + words[3 * thing][1] - '1';
        CHECK(cell > before);
        before = cell;
        for (std::size_t word = 3 * thing; word < 3 * thing + 3; ++word) {
          seen.insert(words[word]);
          auto const fields = links_to_fields(of_row, {32, 32, 16, 4});
          auto const found = std::ranges::find(fields, static_cast<Index>(word), &Link::target);
          REQUIRE(found != fields.end());
          CHECK(found->source == cell);
          CHECK(std::ranges::count(fields, static_cast<Index>(word), &Link::target) == 1);
        }
        auto const known = light.find(words[3 * thing + 1]);
        if (known == light.end()) continue;
        ++lit;
        auto const mean = [&](Index channel) { return mean_of(batch, row, channel, of_row, static_cast<Index>(3 * thing)); };
        double const red = mean(0), blue = mean(2);
        CHECK(red > 0);
        CHECK(red / blue == doctest::Approx(known->second[0] / known->second[2]).epsilon(0.05));
      }
    }
    CHECK(lengths == std::set<std::size_t>{6, 9, 12});
    CHECK(lit > 200);
    CHECK(seen.size() == 16 + 6 + 6);
    CHECK(*data->original(3).reference == fmt::format("{}", fmt::join(caption(*data, batch, 3), " ")));
  }

  TEST_CASE("pictures do not depend on how they are asked for; training follows the seed, held-out ones do not") {
    Keys const few{{"validation", Index{50}}};
    auto const one = pictures("glyphs", few, 1), other = pictures("glyphs", few, 2);
    auto const image = [](Batch const& batch, Index row) { return batch["image"].rows(row, 1).to_vector(); };
    CHECK(image(one->training(0, 8, 9), 5) == image(one->training(5, 1, 9), 0));
    CHECK(image(one->training(0, 8, 9), 5) != image(other->training(0, 8, 9), 5));
    CHECK(image(one->validation(0, 8, 9), 5) == image(other->validation(1, 5, 9), 0));
    CHECK(image(one->validation(0, 8, 9), 5) != image(one->training(0, 8, 9), 5));
    CHECK(one->validation_batches(8, 9) == 7);
    CHECK(one->validation(6, 8, 9).rows() == 2);
    CHECK_THROWS_WITH_AS(one->training(0, 8, 8),
                         "model.context: 8 is too short for glyphs, whose captions have up to 8 words and <eos>; make it 9 or more", Error);
    CHECK_THROWS_WITH_AS(one->validation(7, 8, 9), "validation batch 7 of 7 does not exist", Error);
  }

  TEST_CASE("every shape is another, and stays in its cell") {
    auto const data = pictures("glyphs", {{"noise", 0.0}, {"shapes", Index{8}}, {"colours", Index{8}}, {"cell", Index{16}}});
    Batch const batch = data->validation(0, 1000, 9);
    auto const links = held_out(*data, 0, 1000, 9).links;
    std::map<std::string, std::pair<double, int>> covered;  // of white: the share of the cell
    for (Index row = 0; row < 1000; ++row) {
      auto const words = caption(*data, batch, row);
      double lit = 0, within = 0;
      Tensor const picture = batch["image"].rows(row, 1);
      for (Index i = 0; i < 64 * 64; ++i) lit += picture.at(i);
      for (std::size_t word = 0; word < words.size(); word += 2) {
        double const mean = mean_of(batch, row, 0, at(links, row), static_cast<Index>(word));
        within += mean * 256;
        if (words[word] != "white") continue;
        auto& [sum, count] = covered[words[word + 1]];
        sum += mean / 245, count += 1;
      }
      CHECK(within == doctest::Approx(lit));
    }
    REQUIRE(covered.size() == 8);
    for (auto const& each : covered) {
      CAPTURE(each.first);
      double const share = each.second.first / each.second.second;
      CHECK((share > 0.1 && share < 0.6));
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "digits: of three files, what is held out is not trained on; a caption names them in reading order") {
    for (int kind = 0; kind < 3; ++kind) test::put(folder / std::string(1, "the"[kind]), plain_digits(kind));
    Keys const keys{{"train", (folder / "t").string()}, {"held_out", (folder / "h").string()}, {"test", (folder / "e").string()}};
    std::vector<std::string> const names{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
    for (std::string const part : {"validation", "test"}) {
      auto const data = pictures("digits", keys, 1, part);
      CHECK(data->signature()["image"].shape == std::vector<Index>{1, 16, 32});
      Batch const batch = data->validation(0, 100, 16);
      auto const links = held_out(*data, 0, 100, 16).links;
      for (Index row = 0; row < 100; ++row) {
        auto const words = caption(*data, batch, row);
        for (std::size_t word = 0; word < words.size(); ++word) {
          double const level = mean_of(batch, row, 0, at(links, row), static_cast<Index>(word));
          CHECK(names.at(static_cast<std::size_t>(level) - 1) == words[word]);
        }
      }
    }
    CHECK(pictures("digits", keys)->original(0).reference != pictures("digits", keys, 1, "test")->original(0).reference);
    for (auto const& [text, line] : std::vector<std::pair<std::string, int>>{
             {"1,2,3\n", 1}, {plain_digits() + "x\n", 12}, {plain_digits() + plain_digits().substr(12, 10), 12}}) {
      test::put(folder / "t", text);
      CHECK_THROWS_WITH_AS(
          pictures("digits", keys),
          fmt::format("{}:{}: is not 64 numbers 0 to 16 and a digit, with commas between", (folder / "t").string(), line).c_str(),
          FileError);
    }
    test::put(folder / "t", "# nothing\n");
    CHECK_THROWS_WITH_AS(pictures("digits", keys), doctest::Contains("holds no digits"), FileError);
  }

  TEST_CASE_FIXTURE(test::InFolder, "digits: a file that holds what is trained on is refused, whatever stands beside") {
    auto const digits = plain_digits(), others = plain_digits(1);
    auto lines = test::lines_of(digits);
    std::ranges::reverse(lines);
    auto const reversed = fmt::format("{}\n", fmt::join(lines, "\n")), windows = fmt::format("{}\r\n", fmt::join(lines, "\r\n"));
    auto const part = digits.substr(0, digits.size() / 2), mixed = digits + others.substr(0, others.size() / 2);
    test::put(folder / "train", digits);
    Keys const keys{{"train", (folder / "train").string()}, {"held_out", (folder / "held").string()}, {"test", (folder / "test").string()}};
    for (std::string const name : {"held", "test"}) {
      auto const opened = [&] { return pictures("digits", keys, 1, name == "held" ? "validation" : "test"); };
      for (auto const& copy : {digits, "# other\n" + digits, reversed, windows, part.substr(0, part.rfind('\n') + 1),
                               mixed.substr(0, mixed.rfind('\n') + 1)}) {
        test::put(folder / name, copy);
        CHECK_THROWS_WITH_AS(opened(), doctest::Contains(("digits are in " + (folder / "train").string() + " too").c_str()), FileError);
      }
      test::put(folder / name, others + digits.substr(0, digits.find('\n', 20) + 1));  // one that looks alike
      CHECK_NOTHROW(opened());
    }
  }

  TEST_CASE("what cannot be is refused") {
    auto const said = [](Keys const& keys) { return test::chosen(choice_of<DataKind>(), "glyphs", keys).settings->contradiction(); };
    CHECK(!said({}));
    CHECK(said({{"least", Index{5}}}) == "least: it is more than most");
    CHECK(said({{"most", Index{17}}}) == "most: 17 objects do not fit into 16 cells");
    CHECK(said({{"tells", std::vector<std::string>{}}}) == "tells: is empty");
    CHECK(said({{"tells", std::vector<std::string>{"shape", "shape"}}}) == "tells: shape is listed twice");
  }

  TEST_CASE("links to pixels as links to fields, coarser or finer than the cells") {
    std::vector<Link> links;  // the lower right quarter of 4 × 4 pixels
    for (Index const pixel : {10, 11, 14, 15}) links.push_back({1, pixel, false});
    CHECK(links_to_fields(links, {4, 4, 4, 2}) == std::vector<Link>{{1, 3, false}});
    CHECK(links_to_fields(links, {4, 4, 1, 1}) == std::vector<Link>{{1, 0, false}});
    CHECK(links_to_fields(links, {4, 4, 16, 4}).size() == 4);
    links.push_back({1, 15, true});
    CHECK(links_to_fields(links, {4, 4, 4, 2}) == std::vector<Link>{{1, 3, true}});
  }
}
