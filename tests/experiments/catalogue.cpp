#include "experiments/data/catalogue.hpp"

#include "nn/files/sha256.hpp"
#include "tests/environment.hpp"
#include "tests/folder.hpp"
#include "tests/refusal.hpp"

using namespace heed;

namespace {

std::string hash(std::string const& text) { return sha256(std::as_bytes(std::span(text))); }

CatalogueFile file_of(test::Folder const& folder, std::string const& content = "words and words") {
  std::filesystem::create_directories(folder / "server");
  test::put(folder / "server/words.txt", content);
  return {"text", "set/words.txt", "file://" + (folder / "server/words.txt").string(), hash(content), static_cast<Index>(content.size())};
}

}  // namespace

TEST_SUITE("catalogue") {
  TEST_CASE("the catalogue that comes with heed") {
    auto const& entries = catalogue();
    for (auto const* name : {"tinyshakespeare", "wikitext-2", "names", "sst-2", "squad"})
      CHECK(catalogue_entry(entries, name).name == name);
    CHECK(catalogue_entry(entries, "tinyshakespeare").part("text")->bytes == 1'115'394);
    CHECK(catalogue_entry(entries, "wikitext-2").part("validation")->path == "wikitext-2/valid.txt");
    CHECK_THROWS_WITH_AS(catalogue_entry(entries, "tinyshakespear"),
                         "data.name: 'tinyshakespear' is not in the catalogue; did you mean 'tinyshakespeare'?", Error);
    if (auto const* folder = test::data_folder("HEED_DATA")) {
      for (auto const& entry : entries)
        for (auto const& file : entry.files)
          if (auto const path = std::filesystem::path(folder) / file.path; std::filesystem::exists(path)) {
            CHECK(sha256_of_file(path) == file.sha256);
            CHECK(static_cast<Index>(std::filesystem::file_size(path)) == file.bytes);
          }
    }
  }

  TEST_CASE("a file is taken from the data folder, else from the cache, else fetched into it, again if it is wrong there") {
    test::Folder const folder;
    test::Environment const cache("XDG_CACHE_HOME", (folder / "cache").string());
    auto const file = file_of(folder);
    DataContext const context{".", folder / "data", 1, true};
    auto const cached = folder / "cache/heed/set/words.txt", given = folder / "data/set/words.txt";

    CHECK(obtain(file, context) == cached);
    CHECK(test::get(cached) == "words and words");
    test::put(cached, "words and wor");
    CHECK(obtain(file, context) == cached);
    CHECK(test::get(cached) == "words and words");
    std::filesystem::remove(folder / "server/words.txt");
    CHECK(obtain(file, context) == cached);  // now without the server

    std::filesystem::create_directories(given.parent_path());
    test::put(given, "words and words");
    CHECK(obtain(file, context) == given);
    test::put(given, "other words");
    CHECK_THROWS_WITH_AS(obtain(file, context), doctest::Contains((given.string() + ": has SHA-256 ").c_str()), FileError);
  }

  TEST_CASE_FIXTURE(test::InFolder, "what arrives must be what was promised, and nothing else is left behind") {
    auto const file = file_of(folder);
    auto const target = folder / "target/words.txt";
    auto const refused = [&](std::string const& url, std::string const& sha256, Index bytes, std::string const& message) {
      for (auto const& part : {message, target.string() + ": cannot be fetched from "})
        CHECK_THROWS_WITH_AS(download(url, target, sha256, bytes, true), doctest::Contains(part.c_str()), FileError);
      CHECK(std::filesystem::is_empty(target.parent_path()));
    };
    refused(file.url, hash("other"), file.bytes,
            "15 bytes with SHA-256 " + file.sha256 + " arrived instead of 15 bytes with " + hash("other"));
    refused(file.url, file.sha256, 10, "more than the 10 bytes that it should have");
    refused(file.url + "x", file.sha256, file.bytes, "");
    refused("http://127.0.0.1:1/words.txt", file.sha256, file.bytes, "http://127.0.0.1:1/words.txt");
    refused("gopher://127.0.0.1/words.txt", file.sha256, file.bytes, "gopher");
    refused("no url", file.sha256, file.bytes, "");
    test::put(folder / "target/words.txt", "the old file");
    CHECK_THROWS_AS(download(file.url, target, hash("other"), file.bytes, true), FileError);
    CHECK(test::get(target) == "the old file");
    CHECK_THROWS_WITH_AS(download(file.url, folder / "server/words.txt/below", file.sha256, file.bytes, true),
                         doctest::Contains("Not a directory"), FileError);
  }

  TEST_CASE_FIXTURE(test::InFolder, "without a network it says where to put the file") {
    test::Environment const cache("XDG_CACHE_HOME", (folder / "cache").string());
    auto file = file_of(folder, "words");
    file.url = "http://127.0.0.1:1/words.txt";
    for (auto const& part : {std::string("heed/set/words.txt: cannot be fetched from http://127.0.0.1:1/words.txt: "),
                             std::string("put the file there by hand, or at set/words.txt below a folder that --data or HEED_DATA names")})
      CHECK_THROWS_WITH_AS(obtain(file, {".", folder / "data", 1, true}), doctest::Contains(part.c_str()), FileError);
  }

  TEST_CASE("without a data folder, files are read where they are; a missing file that the catalogue has is pointed out") {
    test::Folder const folder;
    test::Environment const cache("XDG_CACHE_HOME", {}), home("HOME", {}), data("HEED_DATA", {});
    test::put(folder / "here.txt", "words");
    DataContext const context{folder.path(), {}, 1, true};
    CHECK(locate((folder / "here.txt").string(), context) == folder / "here.txt");
    CHECK(locate("here.txt", context) == folder / "here.txt");
    CHECK_THROWS_WITH_AS(locate((folder / "gone.txt").string(), context), doctest::Contains("gone.txt: no such file"), FileError);
    CHECK_THROWS_WITH_AS(locate("tinyshakespeare/input.txt", {folder.path(), folder.path(), 1, true}),
                         doctest::Contains("the catalogue has it: data.name: tinyshakespeare fetches it"), FileError);
    CHECK_THROWS_WITH_AS(locate("gone.txt", context), doctest::Contains("there is no data folder: --data DIR names one"), FileError);
    auto const file = file_of(folder);
    CHECK_THROWS_WITH_AS(obtain(file, context), doctest::Contains("(--data DIR names one)"), Error);
    std::filesystem::create_directories(folder / "data/set");
    test::put(folder / "data/set/words.txt", "words and words");
    CHECK(obtain(file, {folder.path(), folder / "data", 1, true}) == folder / "data/set/words.txt");
    test::Environment const named("HEED_DATA", (folder / "data").string());
    CHECK(obtain(file, context) == folder / "data/set/words.txt");
    CHECK(locate("set/words.txt", context) == folder / "data/set/words.txt");
  }

  TEST_CASE("malformed catalogues are refused with file, line and column") {
    std::string const head = "a:\n  about: x\n  licence: y\n";
    std::string const good = "  text: {path: p, url: u, bytes: 3, sha256: " + std::string(64, '0') + "}\n";
    CHECK(read_catalogue(head + good, "c.yaml").size() == 1);
    std::vector<test::Wrong> const cases = {
        {"", "c.yaml:1:1: the catalogue must be keys with values"},
        {"[a, b]", "c.yaml:1:1: the catalogue must be keys with values"},
        {"a: {", "c.yaml:"},
        {"a: 3", "c.yaml:1:4: 'a' must be keys with values"},
        {head, "c.yaml:1:1: 'a' needs either the file text, or train and validation"},
        {"a:\n  about: x\n" + good, "c.yaml:1:1: 'a' needs about and licence"},
        {head + good + "  licenze: z\n", "c.yaml:5:3: unknown key 'licenze' in 'a'; did you mean 'licence'?"},
        {head + good + "a: 3\n", "c.yaml:5:1: duplicate key 'a'"},
        {head + good + "  train: {path: p}\n", "c.yaml:5:3: 'train' needs path, url, sha256 and bytes"},
        {head + "  text: {path: ../p}\n", "c.yaml:4:16: path must stay inside the data folder"},
        {head + "  text: {path: /p}\n", "c.yaml:4:16: path must stay inside the data folder"},
        {head + "  text: {sha256: 12}\n", "c.yaml:4:18: sha256 must be 64 hexadecimal digits"},
        {head + "  text: {bytes: many}\n", "c.yaml:4:17: bytes must be a number from 1 to"},
        {head + "  text: {bytes: -1}\n", "c.yaml:4:17: bytes must be a number from 1 to"},
        {head + "  text: {url: [u]}\n", "c.yaml:4:15: url must be a string"},
        {"a: \xff", "c.yaml:1:4: byte 0xff is not UTF-8"},
    };
    test::check_refusals<FileError>([](std::string const& text) { read_catalogue(text, "c.yaml"); }, cases);
  }
}
