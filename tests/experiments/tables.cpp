// What a table means: which classes it has, what is said of them, and what is refused.

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/data/examples/files.hpp"
#include "tests/folder.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("tables") {
  using namespace heed;

  namespace {

  using Words = std::vector<std::string>;
  using Change = std::function<void(FileExamples&)>;

  std::string const forms = "classes that differ in blanks, case or form alone: ",
                    single = "classes of one training example (a header? data.header: true): ",
                    alone = "classes of held-out examples alone: ", known = "have the texts of a training example";

  /// What is read of a table and a held-out one, "" of none; what the refusal says, if there is one.
  struct Read {
    Examples examples;
    std::string refusal, remarks;
  };
  Read read(std::string const& name, std::string const& content, Change const& change = {}, std::string const& held_out = "") {
    test::Folder const folder;
    test::put(folder / name, content);
    FileExamples settings;
    settings.training = name;
    settings.header = !name.ends_with("jsonl");
    if (!held_out.empty()) {
      test::put(folder / ("held_out" + name), held_out);
      settings.validation = "held_out" + name;
    }
    if (change) change(settings);
    REQUIRE(!settings.contradiction());
    Read result;
    result.refusal = test::without_folder(test::refusal([&] {
                                            result.examples = settings.read({folder.path(), folder / "data", 1, true});
                                          }),
                                          folder);
    result.remarks = test::without_folder(fmt::format("{}", fmt::join(result.examples.remarks, "\n")), folder);
    return result;
  }

  /// A table of these labels, each with a text of its own, in this format.
  std::string table(std::string const& format, Words const& labels, std::string const& what = "text") {
    std::string const separator = format == "csv" ? "," : "\t";
    std::string text = format == "jsonl" ? "" : "text" + separator + "label\n";
    for (std::size_t i = 0; i < labels.size(); ++i) {
      auto const first = fmt::format("{} {}", what, i);
      if (format == "jsonl")
        text += nlohmann::json{{"text", first}, {"label", labels[i]}}.dump() + "\n";
      else
        text += first + separator + labels[i] + "\n";
    }
    return text;
  }

  Change columns(Words const& names, bool header = true) {
    return [=](FileExamples& all) { all.columns = names, all.header = header; };
  }

  }  // namespace

  TEST_CASE("two labels that differ in form alone are two classes, and it is said; others are not") {
    using Pairs = std::vector<std::pair<std::string, std::string>>;
    Pairs const alike{{"a", "a "},          {"a", " a"},           {"a", "A"},      {"1", "+1"},         {"1", "1.0"},
                      {"1", "01"},          {"0", "-0"},           {"0.5", ".50"},  {"100", "1e2"},      {"Yes", "YES"},
                      {"a", "a\u00a0"},     {"a", "a\u200b"},      {"a b", "a  b"}, {"a b", "a\u00a0b"}, {"a b", "a\u3000b"},
                      {"\u00c4", "\u00e4"}, {"\u00e9", "e\u0301"}, {"\uff21", "a"}, {"\ufb01t", "fit"},  {"stra\u00dfe", "STRASSE"}};
    Pairs others{{"a", "b"}, {"a", "\u00e4"}, {"ab", "a b"}, {"a-b", "ab"}, {"yes", "no"}, {"1", "-1"}, {"1", "10"}, {"1.0", "1.01"}};
    others.emplace_back("9007199254740993", "9007199254740992");
    others.emplace_back("18446744073709551617", "18446744073709551616");
    for (auto const* const pairs : std::initializer_list<Pairs const*>{&alike, &others})
      for (auto const& each : *pairs)
        for (std::string const format : {"tsv", "csv", "jsonl"}) {
          INFO("format ", format, ", first ", each.first, ", second ", each.second);
          // Twice each, so that neither is the class of one example alone.
          auto const of = read("t." + format, table(format, {each.first, each.second, each.first, each.second}));
          CHECK(of.refusal == "");
          CHECK(of.examples.classes.size() == 2);
          CHECK((of.remarks.find(forms) != of.remarks.npos) == (pairs == &alike));
          CHECK(of.remarks.starts_with("2 classes, training + held-out examples: '"));
          CHECK(of.remarks.find(single) == of.remarks.npos);
        }
  }

  TEST_CASE("a label is the text that the file has: numbers of JSON too") {
    for (auto const& [a, b] : std::vector<std::pair<std::string, std::string>>{{"18446744073709551616", "18446744073709551617"},
                                                                               {"-9223372036854775809", "-9223372036854775810"},
                                                                               {"1", "1.0"},
                                                                               {"0", "-0"},
                                                                               {"0.1", "0.10"},
                                                                               {"1e2", "100"},
                                                                               {"1e2", "1E2"},
                                                                               {"0.1", "0.1000000000000000055"},
                                                                               {"123456789012345678901", "123456789012345678902"}}) {
      std::string text;
      for (auto const& label : {a, b, a})
        text += fmt::format(R"({{"text": "a 1.50 \" 2 \\", "label": {}, "more": [{}, null, true]}})", label, b) + "\n";
      auto const of = read("t.jsonl", text, [](auto& all) { all.text = "{text} {more.0} {more.2}"; });
      CHECK(of.refusal == "");
      CHECK(of.examples.training.at(0).label == a);
      CHECK(of.examples.training.at(1).label == b);
      CHECK(of.examples.training.at(0).first == "a 1.50 \" 2 \\ " + b + " true");
    }
  }

  TEST_CASE("headers: of one's own names, in another order, or not declared; columns without a name or a value") {
    struct Case {
      std::string name, content, refusal, remark;
      Change change = {};
    };
    std::string const rows = "a\tx\nb\ty\nc\tx\nd\ty\n", csv = "a,x\nb,y\nc,x\nd,y\n";
    std::string const swapped = "', which data.columns calls column 2", renamed = "; data.columns calls them text, label",
                      undeclared = "t.tsv:1: the line names the columns; say data.header: true, or it is taken for an example";
    Change const named = columns({"text", "label"}), headless = columns({"text", "label"}, false);
    for (Case const& each : std::vector<Case>{
             {"t.tsv", "text\tlabel\n" + rows, "", ""},
             {"t.tsv", "text\tlabel\n" + rows, "", "", named},
             {"t.tsv", "label\ttext\n" + rows, "t.tsv:1: the header calls column 1 'label" + swapped, "", named},
             {"t.csv", "Label,Text\n" + csv, "t.csv:1: the header calls column 1 'Label" + swapped, "", named},
             {"t.tsv", "label\tmore\n" + rows, "t.tsv:1: the header calls column 1 'label" + swapped, "", named},
             {"t.tsv", "sentence\tgold\n" + rows, "", "t.tsv: the header names the columns sentence, gold" + renamed, named},
             {"t.tsv", "Text\tLabel\n" + rows, "", "t.tsv: the header names the columns Text, Label" + renamed, named},
             {"t.tsv", "sentence\tgold\n" + rows, "", single + "'gold' (t.tsv:1)", headless},
             {"t.tsv", "text\tlabel\n" + rows, undeclared, "", headless},
             {"t.tsv", "Label\ttext \n" + rows, undeclared, "", headless},
             {"t.csv", ",text,label\n0,a,x\n1,b,y\n2,c,x\n3,d,y\n", "", ""},
             {"t.csv", "text,label,\na,x,0\nb,y,1\nc,x,2\nd,y,3\n", "", ""},
             {"t.csv", ",,text,label\n0,0,a,x\n1,1,b,y\n2,2,c,x\n3,3,d,y\n", "", ""},
             {"t.csv", "text,label,text\na,x,0\n", "t.csv:1: two columns are called 'text'", ""},
             {"t.csv", ",label\na,x\n", "data.text: there is no column 'text'; t.csv has , label", ""},
         }) {
      INFO("each.name ", each.name, ", each.content ", each.content);
      auto const of = read(each.name, each.content, each.change);
      CHECK(of.refusal == each.refusal);
      if (each.refusal.empty()) CHECK(of.examples.classes.size() == (each.remark.starts_with(single) ? 3 : 2));
      CHECK((of.remarks.find('\n') != of.remarks.npos) == !each.remark.empty());
      CHECK(of.remarks.find(each.remark) != of.remarks.npos);
    }
  }

  TEST_CASE("fields of JSON lines that are not used may be there in some lines only") {
    std::string const a = R"({"text": "a", "label": "x"})", b = R"({"label": "y", "more": {"n": 1}, "text": "b"})";
    for (std::string const& content : {a + "\n" + b + "\n", b + "\n" + a + "\n"}) {
      auto const of = read("t.jsonl", content);
      CHECK(of.refusal == "");
      CHECK(of.examples.classes == Words{"x", "y"});
    }
    CHECK(read("t.jsonl", a + "\n" + b + "\n", [](auto& all) { all.text = "{text} {more.n}"; }).refusal ==
          "t.jsonl:1: there is no field 'more.n'");
    CHECK(read("t.jsonl", a + "\n" + b + "\n", columns({"text", "label"}, false)).examples.classes == Words{"x", "y"});
    CHECK(read("t.jsonl", R"({"text": "a", "label": "x", "a": {"b": 1}, "a.b": 2})").refusal == "t.jsonl:1: has two fields 'a.b'");
  }

  TEST_CASE("what two parts have in common, and what one alone has") {
    auto const training = table("tsv", {"a", "b", "a", "b"}), other = table("tsv", {"b", "a"}, "another");
    auto const with_c = [](FileExamples& all) { all.classes = {"a", "b", "c"}; };
    auto const of = [&](std::string const& held_out, Change const& change = {}) {
      return read("t.tsv", training, change, held_out).remarks;
    };
    CHECK(of(other) == "2 classes, training + held-out examples: 'a' 2 + 1, 'b' 2 + 1");
    CHECK(of(training).ends_with("4 of 4 held-out examples " + known));
    CHECK(of(other + "text 1\tb\ntext 1\ta\n").ends_with("2 of 4 held-out examples " + known));
    CHECK(of(table("tsv", {"c", "a"}, "another"), with_c).ends_with(alone + "'c'"));
    CHECK(of(other, with_c) == "3 classes, training + held-out examples: 'a' 2 + 1, 'b' 2 + 1, 'c' 0 + 0");
    Words many;
    for (int i = 0; i < 60; ++i) many.push_back(std::to_string(i / 2));
    CHECK(read("t.tsv", table("tsv", many)).remarks.ends_with("…"));
    auto const of_questions = read(
        "t.csv", "text,second,a\nq,x y,y\nr,x y,x\n", [](auto& all) { all.second = "{second}", all.answer = "{a}"; },
        "text,second,a\nq,x y,x\n");
    CHECK(of_questions.remarks == "1 of 1 held-out examples " + known);
  }

  TEST_CASE("rows are left out by value, counted and said") {
    auto const change = [](Words const& labels) { return [=](FileExamples& all) { all.leave_out.label = labels; }; };
    auto const content = table("tsv", {"a", "-", "b", "a", "-", ""});
    auto const of = read("t.tsv", content, change({"-", ""}));
    CHECK(of.refusal == "");
    CHECK(of.examples.classes == Words{"a", "b"});
    CHECK(of.examples.training.size() == 3);
    CHECK(of.remarks.starts_with("t.tsv: 3 of 6 rows are left out (data.leave_out)\n2 classes"));
    CHECK(read("t.tsv", content, change({"", "x"})).remarks.starts_with("t.tsv: 1 of 6 rows are left out"));
    CHECK(read("t.tsv", content, change({"", "-", "a", "b"})).refusal == "t.tsv: data.leave_out leaves none of 6 rows");
    CHECK(read("t.jsonl", table("jsonl", {"a", "-", "b"}), change({"-"})).examples.training.size() == 2);
    FileExamples wrong;
    wrong.training = "t.tsv", wrong.header = true, wrong.leave_out.label = {"-"}, wrong.second = "{p}", wrong.answer = "{a}";
    CHECK(wrong.contradiction() == "leave_out: questions have no label");
    wrong.training = "t.json", wrong.header = false, wrong.second = wrong.answer = "";
    CHECK(wrong.contradiction() == "leave_out: is not used with SQuAD's format");
  }

  TEST_CASE("every format reads its sample, by its name or ending, and refuses a key that it does without") {
    for (ExampleFormat const& format : Registry<ExampleFormat>::all()) {
      CAPTURE(format.name);
      for (std::string const& name : Words{"t.any", format.ending.empty() ? "t.any" : "t" + format.ending})
        for (std::string const mark : {"", "\ufeff"}) {
          auto const of = read(name, mark + format.sample, [&](FileExamples& all) {
            if (name == "t.any") all.format = format.name;
            all.header = !format.lacks("header");
          });
          CHECK(of.refusal == "");
          CHECK(of.examples.training.size() == 2);
        }
      FileExamples wrong;
      wrong.training = "t", wrong.format = format.name, wrong.header = true;
      CHECK(wrong.contradiction().has_value() == format.lacks("header"));
      if (format.lacks("header")) CHECK(*wrong.contradiction() == "header: " + format.why);
    }
  }
}
