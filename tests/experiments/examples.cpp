// Labelled examples of files by description: what is read, how parts are split and drawn. malformed_examples has what is refused.

#include "experiments/data/examples/files.hpp"
#include "tests/folder.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("examples") {
  using namespace heed;

  namespace {

  using Words = std::vector<std::string>;
  using Change = std::function<void(FileExamples&)>;

  /// One file of examples.
  struct Bench {
    Bench(std::string name, std::string const& content, bool header = true) {
      test::put(folder / name, content);
      settings.training = std::move(name);
      settings.header = header;
    }
    Examples read(Change const& change = {}, std::uint64_t seed = 1, std::string const& held_out = "validation") const {
      FileExamples changed = settings;
      if (change) change(changed);
      REQUIRE(!changed.contradiction());
      return changed.read({folder.path(), folder / "data", seed, true, held_out});
    }
    test::Folder folder;
    FileExamples settings;
  };

  Words all_of(std::vector<Example> const& examples, std::string Example::*part) {
    Words all;
    for (auto const& example : examples) all.push_back(example.*part);
    return all;
  }
  Words firsts(std::vector<Example> const& examples) { return all_of(examples, &Example::first); }
  Words labels(std::vector<Example> const& examples) { return all_of(examples, &Example::label); }

  std::size_t in_common(std::vector<Example> const& a, std::vector<Example> const& b) {
    auto const of_b = firsts(b);
    std::set<std::string> const known(of_b.begin(), of_b.end());
    return static_cast<std::size_t>(std::ranges::count_if(a, [&](auto const& each) { return known.contains(each.first); }));
  }

  /// n rows of three labels, of which c is rare.
  Bench numbered(int n) {
    std::string text = "text\tlabel\n";
    for (int i = 0; i < n; ++i) text += "number " + std::to_string(i) + "\t" + (i % 20 == 0 ? "c" : i % 3 == 0 ? "b" : "a") + "\n";
    return {"t.tsv", text};
  }

  /// An article of SQuAD's form with so many paragraphs, of a question each.
  std::string article(std::string const& title, int paragraphs) {
    std::string text = "{\"title\": \"" + title + "\", \"paragraphs\": [";
    for (int i = 0; i < paragraphs; ++i) {
      auto const id = title + std::to_string(i);
      text += std::string(i == 0 ? "" : ", ") + R"({"context": "\u00e4 )" + id + R"(", "qas": [{"id": ")" + id +
              R"(", "question": "which )" + id + R"(?", "answers": [{"text": ")" + id + R"(", "answer_start": 2}]}]})";
    }
    return text + "]}";
  }

  }  // namespace

  TEST_CASE("quotes are literal between tabs, a byte-order mark and carriage returns are no text") {
    Bench const bench("t.tsv", "\xef\xbb\xbftext\tlabel\r\n\" one \" , two\tno\r\nthree\tyes");
    auto const read = bench.read();
    CHECK(firsts(read.training) == Words{"\" one \" , two", "three"});
    CHECK(labels(read.training) == Words{"no", "yes"});
    CHECK(read.classes == Words{"no", "yes"});
    CHECK(read.held_out.empty());
    CHECK(read.training[1].location == (bench.folder / "t.tsv").string() + ":3");
    CHECK(read.files.at("training").sha256.size() == 64);
    CHECK(read.files.size() == 1);
  }

  TEST_CASE("CSV by RFC 4180: quotes, doubled quotes, commas and line ends inside") {
    Bench const bench("t.csv", "text,label\r\n\"a, \"\"b\"\"\r\nc\",1\r\nplain,0\r\n\"\"\"\",1");
    auto const read = bench.read();
    CHECK(firsts(read.training) == Words{"a, \"b\"\r\nc", "plain", "\""});
    CHECK(read.training[1].location.ends_with("t.csv:4"));
  }

  TEST_CASE("JSON lines: names in any order, numbers and truths as labels, lists and objects by dotted names") {
    Bench const bench("t.jsonl",
                      R"({"text": "a\n", "label": true, "more": {"x": [1, "two"]}})"
                      "\n"
                      R"({"label": false, "more": {"x": [3, "four"]}, "text": "b"})",
                      false);
    auto const read = bench.read([](auto& all) { all.text = "{text}{more.x.1} {{{more.x.0}}}"; });
    CHECK(firsts(read.training) == Words{"a\ntwo {1}", "bfour {3}"});
    CHECK(read.classes == Words{"false", "true"});
  }

  TEST_CASE("fields between blanks: the last is the rest of the line, as TREC has it; Latin-1 is read if it is said") {
    Bench const bench("t.all", "0 How  far\tis it ? \n1\tWho f\xfcr ?\n", false);
    auto const read = bench.read([](auto& all) {
      all.format = "blank", all.columns = {"label", "text"}, all.encoding = "latin1", all.names = {"NUM", "HUM"};
    });
    CHECK(firsts(read.training) == Words{"How  far\tis it ?", "Who f\u00fcr ?"});
    CHECK(labels(read.training) == Words{"NUM", "HUM"});
  }

  TEST_CASE("classes: whole numbers by size, or as they are given; names for them") {
    Bench const bench("t.tsv", "text\tlabel\na\t10\nb\t9\nc\t-1\n");
    CHECK(bench.read().classes == Words{"-1", "9", "10"});
    auto const named = bench.read([](auto& all) { all.classes = {"9", "10", "-1"}, all.names = {"nine", "ten", "less"}; });
    CHECK(named.classes == Words{"nine", "ten", "less"});
    CHECK(labels(named.training) == Words{"ten", "nine", "less"});
  }

  TEST_CASE("pairs and options by templates; options that are numbered otherwise") {
    Bench const bench("t.csv", "q,a,b,right\nthe sky is,blue,green,A\nthe sea is,dry,wet,B\n");
    auto const read = bench.read([](auto& all) {
      all.text = "{q}", all.options = {"{a}.", "{b}."}, all.label = "{right}", all.classes = {"A", "B"};
    });
    CHECK(read.classes.empty());
    CHECK(read.training[0].options == Words{"blue.", "green."});
    CHECK(labels(read.training) == Words{"0", "1"});
    auto const pairs = bench.read([](auto& all) { all.text = "{a}", all.second = "{b}", all.label = "{right}", all.symmetric = true; });
    CHECK(pairs.symmetric);
    CHECK(pairs.training[0].second == "green");
  }

  TEST_CASE("answers in a table: by character, or where they stand first; none") {
    Bench const bench("t.csv", "q,p,a,s\nwho?,\u00e4 man and a man,man,12\nwhen?,\u00e4 day,,0\n");
    auto const spans = [](FileExamples& all) { all.text = "{q}", all.second = "{p}", all.answer = "{a}"; };
    CHECK(bench.read(spans).training[0].answers == std::vector<Answer>{{"man", 3}});
    auto const placed = bench.read([&](auto& all) { spans(all), all.start = "{s}"; });
    CHECK(placed.training[0].answers == std::vector<Answer>{{"man", 13}});
    CHECK(placed.training[1].answers.empty());
    CHECK(placed.training[1].span);
  }

  TEST_CASE("a share that is held out depends on the texts alone, and texts that are equal stay together") {
    auto const bench = numbered(1'000);
    auto const share = [](FileExamples& all) { all.validation = "0.2", all.test = "0.1"; };
    auto const read = bench.read(share), other_seed = bench.read(share, 7), test = bench.read(share, 1, "test");
    CHECK(read.held_out.size() == 200);
    CHECK(test.held_out.size() == 100);
    CHECK(read.training.size() == 700);
    CHECK(firsts(read.held_out) == firsts(other_seed.held_out));
    CHECK(firsts(read.training) == firsts(test.training));
    CHECK(in_common(read.held_out, read.training) + in_common(read.held_out, test.held_out) + in_common(test.held_out, read.training) == 0);

    Bench const twice("t.tsv", "text\tlabel\na\t0\nb\t1\na\t1\nb\t0\nc\t0\nc\t1\n");
    auto const halves = twice.read([](auto& all) { all.validation = "0.3"; });
    CHECK(halves.held_out.size() == 2);
    CHECK(halves.held_out[0].first == halves.held_out[1].first);
  }

  TEST_CASE("a sample has the labels in proportion, depends on the seed, and holds every smaller one") {
    auto const bench = numbered(1'000);
    auto const sized = [&](Index size, std::uint64_t seed) { return bench.read([&](auto& all) { all.size = size; }, seed); };
    auto const large = sized(300, 1), small = sized(20, 1), other = sized(20, 2);
    CHECK(small.training.size() == 20);
    CHECK(in_common(small.training, large.training) == 20);
    CHECK(in_common(small.training, other.training) < 10);
    CHECK(small.classes == Words{"a", "b", "c"});
    auto const all = bench.read();
    for (std::string const label : {"a", "b", "c"}) {
      auto const share = static_cast<double>(std::ranges::count(labels(all.training), label)) / 1'000;
      CHECK(std::abs(static_cast<double>(std::ranges::count(labels(large.training), label)) - 300 * share) <= 1);
    }
    CHECK(firsts(sized(1'000, 3).training) == firsts(all.training));
  }

  TEST_CASE("SQuAD: answers by byte, articles split whole, questions that cannot be answered") {
    std::string articles = article("one", 40);
    for (std::string const title : {"two", "three", "four", "five"}) articles += ", " + article(title, 40);
    Bench const bench("t.json", "{\"data\": [" + articles + "]}", false);
    auto const plain = bench.read([](auto& all) { all.validation = "0.2"; });
    CHECK(plain.held_out.size() == 40);
    CHECK(plain.training.size() == 160);
    CHECK(plain.training[0].answers == std::vector<Answer>{{plain.training[0].second.substr(3), 3}});
    std::set<std::string> passages;
    for (auto const& each : plain.held_out) passages.insert(each.second.substr(0, 6));
    CHECK(passages.size() == 1);

    auto const some = [](FileExamples& all) { all.unanswerable = 0.5; };
    auto const half = bench.read(some);
    Index without = 0;
    for (auto const& each : half.training) {
      bool const own = each.second.find(each.first.substr(6, each.first.size() - 7)) != std::string::npos;
      CHECK(own == !each.answers.empty());
      if (own) continue;
      ++without;
      CHECK(each.second.substr(3, 2) != each.first.substr(6, 2));
    }
    CHECK(std::abs(static_cast<double>(without) - 100) < 3 * std::sqrt(200 * 0.25));
    CHECK(firsts(bench.read(some, 5).training) == firsts(half.training));
  }

  TEST_CASE("the data sets of the data folder have the sizes that are told of them") {
    auto const* const folder = test::data_folder("HEED_DATA");
    if (folder == nullptr) return;
    auto const read = [&](std::string const& training, std::string const& held_out, Change const& change = {}) {
      FileExamples all;
      if (!training.empty()) all.training = training;
      if (!held_out.empty()) all.validation = held_out;
      if (change) change(all);
      REQUIRE(!all.contradiction());
      return all.read({".", folder, 1, true});
    };
    auto const sst = read("sst2-sentences/train.tsv", "sst2-sentences/dev.tsv", [](auto& all) { all.columns = {"text", "label"}; });
    CHECK(sst.training.size() == 6'920);
    CHECK(sst.held_out.size() == 872);
    auto const trec = read("trec/TREC.train.all", "trec/TREC.test.all", [](auto& all) {
      all.format = "blank", all.encoding = "latin1", all.columns = {"label", "text"};
    });
    CHECK(trec.training.size() == 5'452);
    CHECK(trec.held_out.size() == 500);
    CHECK(trec.classes.size() == 6);
    auto const mrpc = read("glue-mrpc/train.tsv", "glue-mrpc/dev.tsv", [](auto& all) {
      all.header = true, all.text = "{#1 String}", all.second = "{#2 String}", all.label = "{Quality}";
    });
    CHECK(mrpc.training.size() == 3'668);
    CHECK(mrpc.held_out.size() == 408);
    auto const rte = read("glue-rte/train.tsv", "glue-rte/dev.tsv",
                          [](auto& all) { all.header = true, all.text = "{sentence1}", all.second = "{sentence2}"; });
    CHECK(rte.training.size() == 2'490);
    CHECK(rte.classes == Words{"entailment", "not_entailment"});
    auto const squad = read("squad/dev-v1.1.json", "");
    CHECK(squad.training.size() == 10'570);
    auto const named = read("", "0.2", [](auto& all) { all.name = "squad"; });
    CHECK(named.training.size() + named.held_out.size() == 10'570);
    CHECK(named.files.at("training").sha256 == squad.files.at("training").sha256);
    CHECK(test::refusal([&] { read("", "", [](auto& all) { all.name = "sst-2"; }); }) ==
          "data.columns: name them, or say header: true if the first line does");
    CHECK(test::refusal([&] { read("", "", [](auto& all) { all.name = "squad", all.header = true; }); }) ==
          "data.header: is not used with SQuAD's format");
  }
}
