#include "experiments/config/config.hpp"
#include "tests/refusal.hpp"

using namespace heed;
using test::refusal;

namespace {

struct Part : Settings {
  std::string match;
  double rate = 1;
  bool frozen = false;
  std::vector<Field> fields() override {
    return {field(&match, "match", "which").mandatory(), field(&rate, "rate", "how fast").at_least(0), field(&frozen, "frozen", "never")};
  }
  std::optional<std::string> contradiction() override {
    if (frozen && rate != 1) return "rate: does not go with frozen";
    return std::nullopt;
  }
};

struct Whole : Settings {
  std::string name = "whole";
  ListOf<Part> parts;
  std::vector<Field> fields() override { return {field(&name, "name", "a name"), field(&parts, "parts", "what differs")}; }
};

Whole filled(std::string const& text, std::vector<std::string> const& arguments = {}) {
  auto document = parse(text);
  for (auto const& argument : arguments) assign(document, argument);
  Whole whole;
  fill(document, whole);
  return whole;
}

std::string const two = "parts:\n  - {match: a.*, rate: 0.5}\n  - match: b\n    frozen: true\n";

}  // namespace

TEST_SUITE("section_lists") {
  TEST_CASE("items are read in order, each with its own defaults, and written on one line or, where that is long, a line an item") {
    auto whole = filled(two);
    CHECK(emit(whole) == "name: whole\nparts: [{match: \"a.*\", rate: 0.5, frozen: false}, {match: b, rate: 1.0, frozen: true}]\n");
    auto many = filled(two, {"parts.0.match=" + std::string(80, 'x')});
    auto const text = emit(many);
    CHECK(text == "name: whole\nparts:\n  - {match: " + std::string(80, 'x') +
                      ", rate: 0.5, frozen: false}\n  - {match: b, rate: 1.0, frozen: true}\n");
    auto again = filled(text);
    CHECK(emit(again) == text);
    auto none = filled("name: x\n");
    CHECK(emit(none) == "name: x\nparts: []\n");
    CHECK(filled("parts: []\n").parts.items.empty());
  }

  TEST_CASE("arguments change an item, a key of it, or the whole list") {
    CHECK(filled(two, {"parts.0.rate=2"}).parts.items[0].rate == 2);
    CHECK(filled(two, {"parts.0.frozen=yes", "parts.0.rate=1"}).parts.items[0].frozen);
    CHECK(filled(two, {"parts.1={match: c}"}).parts.items[1].match == "c");
    CHECK(!filled(two, {"parts.1={match: c}"}).parts.items[1].frozen);
    CHECK(filled(two, {"parts=[{match: d}]"}).parts.items.size() == 1);
  }

  TEST_CASE("what is wrong is told with its place and the item's number") {
    auto const refused = [](std::string const& text, std::vector<std::string> const& arguments = {}) {
      return refusal<ConfigError>([&] { filled(text, arguments); });
    };
    CHECK(refused("parts: [{rate: 1}]\n") == "configuration:1:9: missing key 'parts.0.match' (a string): which");
    CHECK(refused("parts:\n  - {match: a}\n  - {match: b, rat: 2}\n") ==
          "configuration:3:16: unknown key 'parts.1.rat'; did you mean 'rate'? (allowed: match, rate, frozen)");
    CHECK(refused("parts:\n  - {match: a, rate: -1}\n") == "configuration:2:22: 'parts.0.rate' wants a number ≥ 0, found '-1'");
    CHECK(refused("parts:\n  - {match: a, rate: 2, frozen: true}\n") == "configuration:2:22: parts.0.rate: does not go with frozen");
    CHECK(refused("parts: {match: a}\n") == "configuration:1:8: 'parts' wants a list of sections, found a section (write [{match: a}])");
    CHECK(refused("parts: a\n") == "configuration:1:8: 'parts' wants a list of sections, found 'a'");
    CHECK(refused("parts: [a]\n") == "configuration:1:9: 'parts.0' wants a section (key: value), found 'a'");
    CHECK(refused("match: a\n").find("it belongs under 'parts'") != std::string::npos);
    CHECK(refused(two, {"parts.2.rate=1"}) == "argument 'parts.2.rate=1': 'parts' has no item 2: there are 2, from 0 on");
    CHECK(refused(two, {"parts.x.rate=1"}) == "argument 'parts.x.rate=1': 'parts' is a list and has no keys");
    CHECK(refused(two, {"parts.0.rate=-1"}) == "argument 'parts.0.rate=-1': 'parts.0.rate' wants a number ≥ 0, found '-1'");
  }

  TEST_CASE("places of keys in items, and what differs between two lists") {
    auto const document = parse(two);
    CHECK(location_of(document, "parts.0.rate").line == 2);
    CHECK(location_of(document, "parts.1.frozen").line == 4);
    CHECK(location_of(document, "parts.1.rate").line == 3);
    auto first = filled(two), second = filled(two, {"parts.1.match=c"});
    CHECK(differing_keys(tree(first), tree(second)) == std::vector<std::string>{"parts"});
    CHECK(differing_keys(tree(first), tree(first)).empty());
  }

  TEST_CASE("a page of help has the keys of an item") {
    Whole whole;
    auto const page = describe(whole);
    CHECK(page.find("parts         a list of sections") != std::string::npos);
    CHECK(page.find("parts.match   a string") != std::string::npos);
  }

  TEST_CASE("words of an item are quoted unless they are its switches") {
    auto document = parse("parts: [{match: on, frozen: on}]\n");
    Whole whole;
    quote_texts(document.root, "", whole);
    CHECK(emit_line(document.root) == "{parts: [{match: \"on\", frozen: on}]}");
    auto value = Yaml::scalar("yes");
    quote_texts(value, "parts.0.frozen", whole);
    CHECK(!value.quoted);
  }
}
