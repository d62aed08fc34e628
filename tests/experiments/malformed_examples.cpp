// Files of labelled examples that are wrong, and descriptions that are: one line that begins with the file and line, or with the key.

#include "experiments/data/examples/files.hpp"
#include "tests/folder.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("malformed_examples") {
  using namespace heed;

  namespace {

  using Change = std::function<void(FileExamples&)>;

  std::string const not_utf8 = " is not UTF-8; save it as UTF-8, or say data.encoding: latin1 of examples in Latin-1";

  /// What reading a folder's files says, without the folder's name; "" if nothing.
  std::string said(test::Folder const& folder, FileExamples settings) {
    return test::without_folder(test::refusal([&] { settings.read({folder.path(), folder / "data", 1, true}); }), folder);
  }

  struct Case {
    std::string file, content, message;
    Change change = [](FileExamples&) {};
  };

  /// A setting that is a list of words gets these.
  Change with(std::vector<std::string> FileExamples::*setting, std::vector<std::string> const& words) {
    return [=](FileExamples& all) { all.*setting = words; };
  }

  FileExamples described(std::string const& file) {
    FileExamples settings;
    settings.training = file;
    settings.header = !file.ends_with("jsonl") && !file.ends_with("json");
    return settings;
  }

  void refuses(std::vector<Case> const& cases) {
    for (Case const& each : cases) {
      CAPTURE(each.content);
      test::Folder const folder;
      test::put(folder / each.file, each.content);
      auto settings = described(each.file);
      each.change(settings);
      CHECK(!settings.contradiction().has_value());
      CHECK(said(folder, settings) == each.message);
    }
  }

  }  // namespace

  TEST_CASE("tables between tabs") {
    std::string const head = "text\tlabel\n";
    refuses({
        {"t.tsv", head + "good\t1\nbad\n", "t.tsv:3: has 1 column, and there are 2: text, label"},
        {"t.tsv", head + "good\t1\tmore\nbad\t0\n", "t.tsv:2: has 3 columns, and there are 2: text, label"},
        {"t.tsv", head + "good\t1\nbad\t\n", "t.tsv:3: the label is empty"},
        {"t.tsv", head + "\t1\nbad\t0\n", "t.tsv:2: the text is empty"},
        {"t.tsv", head + "good\t1\n\nbad\t0\n", "t.tsv:3: the line is empty"},
        {"t.tsv", head + "good\t1\n \t \r\nbad\t0\n", "t.tsv:3: the line is empty"},
        {"t.tsv", head + "good\t1\nb\xf0 d\t0\n", "t.tsv:3:2: byte 0xf0" + not_utf8},
        {"t.tsv", head + "gut \xc3\xa4\t1\n\xc3\xa4\xc3\xa4\xed\xa0\x80\t0\n", "t.tsv:3:3: byte 0xed" + not_utf8},
        {"t.tsv", head + "good\t1\nb" + std::string(1, '\0') + "d\t0\n",
         "t.tsv:3:2: a NUL byte, which no text has; a file in UTF-16 must be saved as UTF-8"},
        {"t.tsv", "\xff\xfet", "t.tsv:1:1: byte 0xff" + not_utf8},
        {"t.tsv", head + "good\t1\nbad\t1\n", "t.tsv:2: all labels are '1'"},
        {"t.tsv", head, "t.tsv:1: there are no rows"},
        {"t.tsv", "", "t.tsv: the file is empty"},
        {"t.tsv", "text\t\na\tb\n", "data.label: there is no column 'label'; t.tsv has text, "},
        {"t.tsv", head + "good\t1\n", "t.tsv:1: the header has 2 columns, and data.columns names 3",
         with(&FileExamples::columns, {"text", "label", "other"})},
        {"t.tsv", head + "good\t1\nbad\t0\nbad\t2\n", "t.tsv:4: the label '2' is not one of data.classes; there are 0, 1",
         with(&FileExamples::classes, {"0", "1"})},
        {"t.tsv", head + "a\tyes\nb\tno\nc\tyse\n",
         "t.tsv:4: the label 'yse' is not one of data.classes; did you mean 'yes'?; there are no, yes",
         with(&FileExamples::classes, {"no", "yes"})},
        {"t.txt", head + "good\t1\nbad\t0\n", "data.format: say how t.txt is written: tsv, csv, jsonl, blank or squad"},
        {"t.tsv", "text\tlabel\tsecond\na\t1\tb\nc\t0\t\n", "t.tsv:3: the second text is empty",
         [](FileExamples& all) { all.second = "{second}"; }},
    });
  }

  TEST_CASE("tables between commas and blanks") {
    std::string const head = "text,label\n";
    auto const blank = [](FileExamples& all) { all.format = "blank", all.header = false, all.columns = {"label", "text"}; };
    refuses({
        {"t.csv", head + "a,1\nb,0,\n", "t.csv:3: has 3 columns, and there are 2: text, label"},
        {"t.csv", head + "a,1\n\"b,0\n", "t.csv:3: the quote that begins a field here is never closed"},
        {"t.csv", head + "\"two\nlines\",1\nb\n", "t.csv:4: has 1 column, and there are 2: text, label"},
        {"t.csv", head + "\"a\" b,1\n", "t.csv:2: text behind the quote that ends a field; a quote inside is doubled"},
        {"t.csv", head + "a \"b\",1\n", "t.csv:2: a quote inside a field that does not begin with one; quote the field and double it"},
        {"t.csv", head + "a,1\n\nb,0\n", "t.csv:3: the line is empty"},
        {"t.csv", head + "\"\",1\n", "t.csv:2: the text is empty"},
        {"t.csv", head + "a,1\nb,\"\"\n", "t.csv:3: the label is empty"},
        {"t.all", "0 how ?\n1\n", "t.all:2: has 1 column, and there are 2: label, text", blank},
        {"t.all", "\xef\xbb\xbf", "t.all:1: there are no rows", [](FileExamples& all) { all.format = "blank"; }},
        {"t.all", "0 how ?\n\n1 what ?\n", "t.all:2: the line is empty", blank},
        {"t.all", "0 h\xf8w ?\n", "t.all:1:4: byte 0xf8" + not_utf8, blank},
    });
  }

  TEST_CASE("JSON lines") {
    std::string const good = "{\"text\": \"a\", \"label\": 1}\n";
    refuses({
        {"t.jsonl", good + "{\"text\": \"b\", \"lable\": 0}\n", "t.jsonl:2: there is no field 'label'; did you mean 'lable'?"},
        {"t.jsonl", good + "{\"text\": \"b\"}\n", "t.jsonl:2: there is no field 'label'"},
        {"t.jsonl", good + "[1]\n", "t.jsonl:2: the line is no JSON object, {\"column\": …}"},
        {"t.jsonl", good + "{\"text\": \"b\", \"label\": null}\n", "t.jsonl:2: the label is empty"},
        {"t.jsonl", good + "{\"text\": \"\", \"label\": 0}\n", "t.jsonl:2: the text is empty"},
        {"t.jsonl", good + "\n", "t.jsonl:2: the line is empty"},
    });
    for (auto const& line :
         std::vector<std::string>{"{\"text\": \"b\", \"label\": 0", "{\"text\": \"b\", \"text\": \"c\", \"label\": 0}", "{text: b}",
                                  "{\"text\": \"\\ud800\", \"label\": 0}", "{\"text\": \"b\", \"label\": 1e999}", "nan",
                                  "{\"text\": " + std::string(2'000, '[')}) {
      test::Folder const folder;
      test::put(folder / "t.jsonl", good + line + "\n");
      CHECK(said(folder, described("t.jsonl")).starts_with("t.jsonl:2: the line"));
    }
  }

  TEST_CASE("options and answers") {
    auto const choice = [](FileExamples& all) { all.options = {"{a}", "{b}"}; };
    auto const answer = [](FileExamples& all) { all.second = "{passage}", all.answer = "{answer}", all.start = "{start}"; };
    std::string const options = "text,a,b,label\n", answers = "text,passage,answer,start\n";
    refuses({
        {"t.csv", options + "q,x,y,2\n", "t.csv:2: the label '2' is not the number of an option; there are 0, 1", choice},
        {"t.csv", options + "q,x,y,0\nq,x,y,-1\n",
         "t.csv:3: the label '-1' is not the number of an option; did you mean '1'?; there are 0, 1", choice},
        {"t.csv", options + "q,x,,0\n", "t.csv:2: the option 1 is empty", choice},
        {"t.csv", answers + "q,the passage,passage,5\n", "t.csv:2: the answer 'passage' is not at character 5 of the passage", answer},
        {"t.csv", answers + "q,the passage,passage,40\n",
         "t.csv:2: the answer's start '40' is not the number of a character of the passage, 0 … 10", answer},
        {"t.csv", answers + "q,the passage,passage,four\n",
         "t.csv:2: the answer's start 'four' is not the number of a character of the passage, 0 … 10", answer},
        {"t.csv", answers + "q,,passage,4\n", "t.csv:2: the passage is empty", answer},
        {"t.csv", answers + "q,the passage,word,4\n", "t.csv:2: the answer 'word' does not occur in the passage",
         [](FileExamples& all) { all.second = "{passage}", all.answer = "{answer}"; }},
    });
  }

  TEST_CASE_FIXTURE(test::InFolder, "SQuAD's JSON") {
    auto const file = [](std::string const& question) {
      return "{\"data\": [{\"title\": \"T\", \"paragraphs\": [{\"context\": \"the \u00e4 passage\", \"qas\": [" + question + "]}]}]}";
    };
    std::string const good = R"({"id": "q1", "question": "what?", "answers": [{"text": "passage", "answer_start": 6}]})";
    refuses({
        {"t.json", R"({"dat": []})", "t.json: has no 'data'; did you mean 'dat'?"},
        {"t.json", R"({"data": {}})", "t.json: 'data' is no list"},
        {"t.json", R"({"data": []})", "t.json: there are no questions"},
        {"t.json", R"({"data": [{"title": "T"}]})", "t.json: data[0]: has no 'paragraphs'"},
        {"t.json", R"({"data": [{"title": "T", "paragraphs": [{"context": "", "qas": []}]}]})",
         "t.json: data[0].paragraphs[0]: 'context' is empty"},
        {"t.json", file("7"), "t.json: data[0].paragraphs[0].qas[0]: is no object"},
        {"t.json", file(R"({"question": "what?"})"), "t.json: data[0].paragraphs[0].qas[0]: has no 'id'"},
        {"t.json", file(R"({"id": "q1", "question": "what?", "answers": []})"),
         "t.json: question q1: there are no answers; a question without one says is_impossible: true"},
        {"t.json", file(R"({"id": "q1", "question": "what?", "is_impossible": true, "answers": [{"text": "a", "answer_start": 1}]})"),
         "t.json: question q1: 'is_impossible' is true, and there are answers"},
        {"t.json", file(R"({"id": "q1", "question": "what?", "answers": [{"text": "passage", "answer_start": 7}]})"),
         "t.json: question q1: its answer 'passage' is not at character 7 of the passage, where 'assage' stands"},
        {"t.json", file(R"({"id": "q1", "question": "what?", "answers": [{"text": "passage", "answer_start": 90}]})"),
         "t.json: question q1: its answer 'passage' begins at character 90, and the passage has 13"},
        {"t.json", file(R"({"id": "q1", "question": "what?", "answers": [{"text": "passage", "answer_start": -1}]})"),
         "t.json: question q1: an answer: 'answer_start' is no number of a character"},
        {"t.json", file(R"({"id": "q1", "question": 5, "answers": []})"), "t.json: question q1: 'question' is no text"},
        {"t.json", file(good + "," + good), "t.json: question q1: there are two of this id"},
    });
    test::put(folder / "t.json", file(good));
    CHECK(said(folder, described("t.json")) == "");
    test::put(folder / "t.json", file(good).substr(0, 100));
    CHECK(said(folder, described("t.json")).starts_with("t.json: the file"));
  }

  TEST_CASE_FIXTURE(test::InFolder, "a label of held-out examples that training does not have, and files that are not there") {
    auto settings = described("train.tsv");
    settings.validation = "dev.tsv";
    test::put(folder / "train.tsv", "text\tlabel\na\tentailment\nb\tneutral\n");
    CHECK(said(folder, settings).starts_with("dev.tsv: no such file"));
    test::put(folder / "dev.tsv", "text\tlabel\na\tneutral\nb\tentailmnt\n");
    CHECK(said(folder, settings) ==
          "dev.tsv:3: the label 'entailmnt' does not occur in the training examples; did you mean 'entailment'?; there are entailment, "
          "neutral");
    test::put(folder / "dev.tsv", "sentence\tlabel\na\tneutral\n");
    CHECK(said(folder, settings) == "data.text: there is no column 'text'; dev.tsv has sentence, label");
  }

  TEST_CASE_FIXTURE(test::InFolder, "descriptions that do not fit the files") {
    std::string const good = "text,label\na,1\nb,0\n";
    auto const cases = [&](std::string const& message, Change const& change) { refuses({{"t.csv", good, message, change}}); };
    cases("data.text: there is no column 'txt'; did you mean 'text'?; t.csv has text, label", [](auto& all) { all.text = "{txt}"; });
    cases("data.label: 'a {label' has a brace without its other; columns are written {name}, a brace itself twice",
          [](auto& all) { all.label = "a {label"; });
    cases("data.text: 'a} b' has a brace without its other; columns are written {name}, a brace itself twice",
          [](auto& all) { all.text = "a} b"; });
    cases("data.names: 3 names for 2 classes: 0, 1", [](auto& all) { all.names = {"a", "b", "c"}; });
    cases("data.size: there are 2 training examples", [](auto& all) { all.size = 3; });
    cases("data.validation: a share of 0.1 of 2 examples leaves 2 for training; articles and equal texts stay together",
          [](auto& all) { all.validation = "0.1"; });
    test::put(folder / "t.csv", good);
    CHECK(test::refusal([&] {
            described("t.csv").read({folder.path(), folder.path(), 1, true, "test"});
          }) == "data.test: there is no test part; name its file, or a share of the training file");
  }

  TEST_CASE("descriptions that contradict themselves") {
    auto const says = [](std::string const& file, Change const& change) {
      auto settings = described(file);
      change(settings);
      return settings.contradiction().value_or("");
    };
    CHECK(says("t.tsv", [](auto& all) { all.header = false; }) == "columns: name them, or say header: true if the first line does");
    CHECK(says("t.tsv", [](auto& all) { all.training.reset(); }) == "training: give a file, or the name of a data set of the catalogue");
    CHECK(says("t.tsv", [](auto& all) { all.name = "sst-2"; }).starts_with("name: give either"));
    CHECK(says("t.tsv", [](auto& all) { all.validation = "1.5"; }) == "validation: a share is > 0 and ≤ 0.9");
    CHECK(says("t.tsv", [](auto& all) { all.options = {"{a}"}; }).starts_with("options: "));
    CHECK(says("t.tsv", [](auto& all) { all.answer = "{a}"; }).starts_with("answer: "));
    CHECK(says("t.tsv", [](auto& all) { all.start = "{a}"; }).starts_with("start: "));
    CHECK(says("t.tsv", [](auto& all) { all.symmetric = true; }).starts_with("symmetric: "));
    CHECK(says("t.tsv", [](auto& all) { all.exact_match = true; }).starts_with("exact_match: "));
    CHECK(says("t.tsv", [](auto& all) { all.unanswerable = 0.5; }).starts_with("unanswerable: "));
    CHECK(says("t.tsv", [](auto& all) { all.classes = {"a", "a"}; }) == "classes: has one twice");
    CHECK(says("t.jsonl", [](auto& all) { all.header = true; }) == "header: JSON lines have none");
    CHECK(says("t.json", [](auto& all) { all.columns = {"a"}; }) == "columns: is not used with SQuAD's format");
  }
}
