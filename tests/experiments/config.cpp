#include "experiments/config/config.hpp"

#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/train/experiment.hpp"
#include "tests/experiments/config_sample.hpp"
#include "tests/folder.hpp"

namespace {

using namespace heed;

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t n) { return static_cast<std::size_t>(random() % n); }

/// Any text, with a liking for what YAML gives a meaning.
std::string any_text(Random& random) {
  static std::vector<std::string> const pieces = {
      "a", "no",   "null", "~",  "1",    "1e3", ".5", ": ", ":", " #", "#",  "- ", "{",    "}",      "[",      "]",     ",",
      "&", "*",    "!",    "|",  ">",    "'",   "\"", "%",  "@", "`",  "\n", "\t", " ",    "\\",     "é",      "日",    "😀",
      "?", "true", "---",  "..", "0x1F", "=",   "<<", "_",  "/", "-",  ".",  "\r", "\x01", "\u0085", "\u2028", "\uFEFF"};
  std::string text;
  for (std::size_t n = below(random, 6); n > 0; --n) text += pieces[below(random, pieces.size())];
  return text;
}

double any_real(Random& random) {
  std::size_t const kind = below(random, 4);
  if (kind == 0) return static_cast<double>(below(random, 2000)) - 1000;
  if (kind == 1) return std::ldexp(static_cast<double>(random() >> 11), -53);
  if (kind == 2) return std::pow(10, static_cast<double>(below(random, 40)) - 20);
  while (true) {
    double const value = std::bit_cast<double>(random());
    if (std::isfinite(value)) return value;
  }
}

double any_real(Random& random, Field const& field) {
  while (true) {
    double const value = std::abs(any_real(random));
    if (field.open ? value > field.min && value < field.max : value >= field.min && value <= field.max) return value;
  }
}

void set_any(Random& random, Settings& settings);

void set_any(Random& random, Field const& field) {
  auto const integer = [&] { return static_cast<Index>(1 + below(random, 900)); };
  auto const text = [&] { return field.words.empty() ? any_text(random) : field.words[below(random, field.words.size())]; };
  bool const some = below(random, 2) == 0;
  std::visit(
      [&](auto* target) {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<T, Settings>)
          set_any(random, *target);
        else if constexpr (std::is_same_v<T, SettingsList>) {
          target->clear();
          for (std::size_t i = below(random, 3); i > 0; --i) set_any(random, target->add());
        } else if constexpr (std::is_same_v<T, SettingsMap>) {
          target->clear();
          for (std::string const name : {"a", "b"})
            if (some) set_any(random, target->add(name));
        } else if constexpr (std::is_same_v<T, Choice>) {
          std::size_t const i = below(random, target->options.size() + (target->kind.empty() && !field.required ? 1 : 0));
          if (i == target->options.size()) return;
          target->kind = target->options[i].name;
          target->settings = target->options[i].make();
          set_any(random, *target->settings);
        } else if constexpr (std::is_same_v<T, bool>)
          *target = some;
        else if constexpr (std::is_same_v<T, Index>)
          *target = integer();
        else if constexpr (std::is_same_v<T, double>)
          *target = any_real(random, field);
        else if constexpr (std::is_same_v<T, std::string>)
          *target = text();
        else if constexpr (std::is_same_v<T, std::vector<double>>)
          target->assign(below(random, 4), any_real(random, field));
        else if constexpr (std::is_same_v<T, std::vector<std::vector<double>>>)
          target->assign(below(random, 3), std::vector<double>(below(random, 4), any_real(random, field)));
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
          target->assign(below(random, 4), text());
        else if constexpr (std::is_same_v<T, std::optional<double>>)
          *target = some ? std::optional(any_real(random, field)) : std::nullopt;
        else if constexpr (std::is_same_v<T, std::optional<Index>>)
          *target = some ? std::optional(integer()) : std::nullopt;
        else
          *target = some ? std::optional(text()) : std::nullopt;
      },
      field.target);
}

void set_any(Random& random, Settings& settings) {
  for (auto const& field : settings.fields()) set_any(random, field);
  if (auto* const gpt = dynamic_cast<sample::Gpt*>(&settings)) gpt->width = gpt->heads * 4;
}

sample::Experiment any_experiment(std::uint64_t seed) {
  Random random(seed);
  sample::Experiment experiment;
  set_any(random, experiment);
  return experiment;
}

sample::Experiment filled(Document const& document) {
  sample::Experiment experiment;
  fill(document, experiment);
  return experiment;
}

/// The settings of a section that has a kind.
template <class T>
T const& section_of(Choice const& choice) {
  return dynamic_cast<T const&>(*choice.settings);
}

std::string const small = "model: gpt\ndata: {path: a.txt}\n";

/// The resolved configuration of the small one, changed by arguments.
sample::Experiment with(std::vector<std::string> const& arguments, std::string const& text = small) {
  Document document = parse(text);
  for (auto const& argument : arguments) assign(document, argument);
  return filled(document);
}

}  // namespace

TEST_SUITE("config") {
  TEST_CASE("what is not said keeps its default") {
    auto experiment = with({});
    CHECK(emit(experiment) ==
          "name: run\n"
          "seed: 1\n"
          "note: null\n"
          "data: {path: a.txt, tokenizer: char}\n"
          "model:\n"
          "  kind: gpt\n"
          "  layers: 4\n"
          "  heads: 4\n"
          "  width: 128\n"
          "  position: learned\n"
          "  attention: {score: scaled_dot, align: softmax, temperature: 1.0}\n"
          "  dropout: 0.0\n"
          "  bias: true\n"
          "  key_width: null\n"
          "train:\n"
          "  steps: 2000\n"
          "  optimizer: {kind: adamw, lr: 0.001, betas: [0.9, 0.999]}\n"
          "  schedule: null\n"
          "  clip: 1.0\n"
          "probes: []\n");
  }

  TEST_CASE("the resolved configuration reads back as equal settings and the same text") {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      auto settings = any_experiment(seed);
      std::string const text = emit(settings);
      INFO(text);
      auto again = filled(parse(text));
      CHECK(emit(again) == text);
      CHECK(differing_keys(parse(text).root, tree(settings)).empty());
      CHECK(again.name == settings.name);
      CHECK(again.note == settings.note);
      CHECK(again.train.clip == settings.train.clip);
      CHECK(again.model.kind == settings.model.kind);
    }
  }

  TEST_CASE("assigning every key of one configuration to another makes them equal") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      auto from = any_experiment(2 * seed), to = any_experiment(2 * seed + 1);
      Document document = parse(emit(from));
      for (auto const* const section : {"model", "train.optimizer", "train.schedule"}) assign(document, std::string(section) + "=");
      for (auto const& [key, value] : flatten(tree(to))) assign(document, key + "=" + value);
      auto result = filled(document);
      CHECK(emit(result) == emit(to));
    }
  }

  TEST_CASE("any string survives being written and read") {
    Random random(7);
    for (int i = 0; i < 5000; ++i) {
      std::string const text = any_text(random);
      std::string const line = emit_line(Yaml::scalar(text, true));
      INFO(line);
      auto const list = parse_yaml("[" + line + "]", "list");
      REQUIRE(list.items.size() == 1);
      CHECK(list.items[0].kind == Yaml::NodeKind::scalar);
      CHECK(list.items[0].text == text);
    }
  }

  TEST_CASE("every escape of YAML is UTF-8, and reads back") {
    auto const value = parse_yaml("a: \"x\\N\\_\\L\\P\\e\\x85\\u0085é\"\n", "input");
    std::string const text = "x\u0085\u00a0\u2028\u2029\x1b\u0085\u0085é";
    CHECK(value.find("a")->text == text);
    CHECK(parse_yaml(emit(value), "emitted").find("a")->text == text);
    CHECK(emit(Yaml::scalar("d\xff")) == "\"d\uFFFD\"\n");
  }

  TEST_CASE("reals read back bit for bit, and as reals in YAML 1.1") {
    Random random(11);
    for (int i = 0; i < 5000; ++i) {
      double const value = any_real(random);
      std::string const text = print_real(value);
      INFO(text);
      // PyYAML takes 1e-05 and 1.0e5 for text: a real has a point, and its exponent a sign.
      auto const exponent = text.find('e');
      CHECK(text.find('.') < exponent);
      CHECK((exponent == text.npos || text[exponent + 1] == '-' || text[exponent + 1] == '+'));
      auto const again = parse_real(text);
      REQUIRE(again);
      CHECK(std::bit_cast<std::uint64_t>(*again) == std::bit_cast<std::uint64_t>(value));
    }
    CHECK(print_real(1e-5) == "1.0e-05");
    CHECK(print_real(-0.0) == "0.0");  // so that both are one configuration
    CHECK(print_real(3) == "3.0");
  }

  TEST_CASE("numbers and truth values, as they may be written") {
    for (auto const* const text : {"1", "+1", "1.0", "1.", "1e0", "1.0e-0", "10e-1"}) CHECK(parse_real(text) == 1.0);
    CHECK(parse_real(".5") == 0.5);
    CHECK(parse_real("-.5e1") == -5);
    for (auto const* const text : {"",     "+",   ".",    "e3",    "1e",  "1 ",  " 1",  "0x10", "1_000", "inf",
                                   ".inf", "nan", ".nan", "1e999", "--1", "+-1", "1,5", "010",  "00.5",  "-01"}) {
      CHECK_MESSAGE(!parse_real(text), text);
    }
    CHECK(parse_integer("-9223372036854775808") == std::numeric_limits<Index>::min());
    CHECK(parse_integer("+7") == 7);
    for (auto const* const text : {"", "-", "1.0", "1e3", "010", "0x10", "1_000", "9223372036854775808", "7 "}) {
      CHECK_MESSAGE(!parse_integer(text), text);
    }
    for (auto const* const text : {"true", "True", "yes", "on", "ON"}) CHECK(parse_truth(text) == true);
    for (auto const* const text : {"false", "FALSE", "no", "off"}) CHECK(parse_truth(text) == false);
    for (auto const* const text : {"", "y", "1", "0", "tRue"}) CHECK_MESSAGE(!parse_truth(text), text);
  }

  TEST_CASE("a string is what was typed; a switch knows no and off") {
    auto const experiment = with({"name=no", "note=1e3", "model.bias=no"});
    CHECK(experiment.name == "no");
    CHECK(experiment.note == "1e3");
    CHECK(with({"note='~'"}).note == "~");
    CHECK(with({"note=~"}).note == std::nullopt);
    CHECK(!section_of<sample::Gpt>(experiment.model).bias);
    for (char const* const none : {"train.clip=none", "train.clip=null"}) CHECK(with({none}).train.clip == std::nullopt);
  }

  TEST_CASE("sections in one word") {
    auto const attention = [](sample::Experiment const& e) { return section_of<sample::Gpt>(e.model).attention; };
    auto const local = with({"model.attention=local-p"});
    CHECK(attention(local).score == "general");
    CHECK(attention(local).align == "local_p");
    auto const changed = with({"model.attention=local-p", "model.attention.score=dot"});
    CHECK(attention(changed).score == "dot");
    CHECK(attention(changed).align == "local_p");
    auto const replaced = with({"model.attention=dot"}, "model: {kind: gpt, attention: {align: local_p}}\ndata: {path: a.txt}\n");
    CHECK(attention(replaced).score == "dot");
    CHECK(attention(replaced).align == "softmax");
    CHECK(with({"train.schedule=cosine"}).train.schedule.kind == "cosine");
    CHECK(with({"train.schedule=cosine", "train.schedule=null"}).train.schedule.kind.empty());
    CHECK(section_of<sample::Cosine>(with({"train.schedule=cosine", "train.schedule.warmup=7"}).train.schedule).warmup == 7);
    CHECK(with({"train.optimizer=sgd"}).train.optimizer.kind == "sgd");
    CHECK(with({"train.optimizer={lr: 2}"}).train.optimizer.kind == "adamw");
  }

  TEST_CASE("keys in a name") {
    CHECK(with({"name='${model.kind}-${model.width}-seed${seed}'", "seed=-3"}).name == "gpt-128-seed-3");
    CHECK(with({"name=${train.optimizer.lr}"}).name == "0.001");
    CHECK(with({"note=${seed}"}).note == "${seed}");
  }

  TEST_CASE("aliases are copies") {
    CHECK(with({}, "data: {path: &word no, tokenizer: byte}\nmodel: gpt\nname: *word\n").name == "no");
    auto const shared = with({}, "model: {kind: gpt, attention: &a {score: dot}}\ndata: {path: a}\nprobes: &p [entropy, entropy]\n");
    CHECK(shared.probes.size() == 2);
  }

  TEST_CASE("merge keys, as in YAML 1.1: a map's own keys count first, then those of the first map") {
    auto const merged = [](std::string const& text) { return emit_line(*parse_yaml(text, "input").find("c")); };
    std::string const ab = "a: &a {p: 1, q: 2}\nb: &b {q: 3, r: {u: 4}}\n";
    CHECK(merged(ab + "c: {<<: *a, w: 5}\n") == "{p: 1, q: 2, w: 5}");
    CHECK(merged(ab + "c:\n  w: 5\n  <<: *a\n  q: 6\n") == "{p: 1, w: 5, q: 6}");
    CHECK(merged(ab + "c: {<<: [*a, *b], w: 5}\n") == "{p: 1, q: 2, r: {u: 4}, w: 5}");
    CHECK(merged(ab + "c: {<<: [*b, *a]}\n") == "{q: 3, r: {u: 4}, p: 1}");
    CHECK(merged(ab + "c: {<<: {s: 1}, w: 5}\n") == "{s: 1, w: 5}");
    CHECK(merged(ab + "c: {z: {<<: *b, u: 7}}\n") == "{z: {q: 3, r: {u: 4}, u: 7}}");
    CHECK(merged("a: &a {p: 1}\nb: &b {<<: *a, q: 2}\nc: {<<: *b, z: 3}\n") == "{p: 1, q: 2, z: 3}");
    CHECK(merged("c: {\"<<\": 1}\n") == "{\"<<\": 1}");  // quoted, it is a key as any other
    auto const experiment = with({}, small + "train: {steps: 5, schedule: {kind: cosine, <<: {warmup: 3}}}\n");
    CHECK(section_of<sample::Cosine>(experiment.train.schedule).warmup == 3);
    for (std::string const wrong : {"1", "[1]", "", "[*a, 2]", "[[*a]]"})
      CHECK_THROWS_WITH_AS(parse_yaml(ab + "c: {<<: " + wrong + "}\n", "input"),
                           doctest::Contains("'<<' merges a map, or a list of maps, into this one"), ConfigError);
    CHECK_THROWS_WITH_AS(parse_yaml(ab + "c: {<<: *a, <<: *b}\n", "input"), doctest::Contains("duplicate key 'c.<<'"), ConfigError);
    CHECK_THROWS_WITH_AS(parse_yaml("c: &c {<<: *c}\n", "input"), doctest::Contains("an alias to the value that contains it"), ConfigError);
  }

  TEST_CASE("what is written reads the same elsewhere: texts that YAML 1.1 takes for something else stand in quotes") {
    for (std::string const text :
         {"no",  "No", "on",  "off",        "yes", "y",    "N",   "true", "null", "~",     "0o7", "0x1F", "1:30", "1_000",
          "010", "7",  "1e3", "2024-01-01", "1-2", ".inf", "nan", "=",    "<<",   "1.2.3", "0b1", "+1",   "12e03"})
      CHECK_MESSAGE(emit_line(Yaml::scalar(text, true)) == '"' + text + '"', text);
    for (std::string const text : {"2024-01-01", "0o7", "1:30", "010", "1-2", "1.2.3", "007"})  // typed without quotes
      CHECK_MESSAGE(emit_line(Yaml::scalar(text)) == '"' + text + '"', text);
    for (std::string const text : {"7", "-3", "0.5", "1.0e-05"}) CHECK_MESSAGE(emit_line(Yaml::scalar(text)) == text, text);
    sample::Experiment experiment;
    auto rates = parse_yaml("[1e-3, 25e-2, 1.5e-3, 1e3, 7, e-3]", "rates");
    quote_texts(rates, "seed", experiment);
    CHECK(emit_line(rates) == "[1.e-3, 25.e-2, 1.5e-3, 1e3, 7, e-3]");
    auto document = parse(
        "name: no\nnote: 1:30\nmodel: {kind: gpt, bias: no, attention: {score: on}}\ndata: {path: off}\nseed: 7\n"
        "probes: [yes, entropy]\n");
    quote_texts(document.root, "", experiment);
    CHECK(emit(document.root) ==
          "name: \"no\"\nnote: \"1:30\"\nmodel: {kind: gpt, bias: no, attention: {score: \"on\"}}\n"
          "data: {path: \"off\"}\nseed: 7\nprobes: [\"yes\", entropy]\n");
  }

  TEST_CASE("what a file may look like") {
    CHECK(with({}, "\xEF\xBB\xBF" + small).data.path == "a.txt");
    CHECK(with({}, "%YAML 1.2\n---\n" + small + "...\n").data.path == "a.txt");
    CHECK(with({}, "model: gpt\r\ndata:\r\n  path: a.txt\r\n").data.path == "a.txt");
    CHECK(with({}, "model: gpt # the usual\n\ndata: {path: a.txt,\n       tokenizer: byte}\n").data.tokenizer == "byte");
    CHECK(with({}, small + "note: |\n  two\n  lines\n").note == "two\nlines\n");
    CHECK(with({}, small + "train:\n").train.steps == 2000);
  }

  TEST_CASE("an argument replaces a key that is written with its dots") {
    Document document = parse("set: {train.steps: 100, train.batch: 4}\n", "c.yaml");
    assign(document, "set.train.steps=60");
    CHECK(flatten(document.root) == std::vector<std::pair<std::string, std::string>>{{"set.train.steps", "60"}, {"set.train.batch", "4"}});
  }

  TEST_CASE("places survive") {
    Document document = parse("model:\n  kind: gpt\n  width: 64\n", "c.yaml");
    assign(document, "seed=3");
    CHECK(to_string(location_of(document, "model.width")) == "c.yaml:3:10");
    CHECK(to_string(location_of(document, "model.heads")) == "c.yaml:2:3");
    CHECK(to_string(location_of(document, "seed")) == "argument 'seed=3'");
  }

  TEST_CASE("keys that differ") {
    auto const keys = differing_keys(parse("a: 1\nb: {c: 2, d: [1, 2]}\ne: x\n").root, parse("a: 1\nb: {c: 3, d: [1, 2]}\nf: {}\n").root);
    CHECK(keys == std::vector<std::string>{"b.c", "e", "f"});
    sample::Experiment one, two;
    two.train.steps = 5;
    CHECK(differing_keys(tree(one), tree(two)) == std::vector<std::string>{"train.steps"});
    CHECK(flatten(parse("a: {b: no, c: [x, 'no']}").root)[1] == std::pair<std::string, std::string>{"a.c", "[x, \"no\"]"});
  }

  TEST_CASE("the nearest word") {
    CHECK(nearest("layrs", {"heads", "layers", "width"}) == "layers");
    CHECK(nearest("local-p", {"local_m", "local_p"}) == "local_p");
    CHECK(nearest("Char", {"byte", "char"}) == "char");
    CHECK(nearest("widht", {"width"}) == "width");
    CHECK(nearest("optim", {"model", "optimizer"}) == "optimizer");
    CHECK(nearest("gtp", {"gpt", "bert"}) == "gpt");
    CHECK(nearest("x", {"y"}).empty());
    CHECK(nearest("rope", {"learned", "rotary"}) == "rotary");
    CHECK(nearest("shakespear", {"names", "tinyshakespeare"}) == "tinyshakespeare");
    CHECK(nearest("attention", {"cross_attention", "self_attention"}).empty());
    CHECK(nearest("banana", {"heads", "layers", "width"}).empty());
    // What dotted names have in common says nothing of what is meant.
    CHECK(nearest("validation.f1", {"validation.bleu", "validation.loss"}).empty());
    CHECK(nearest("validation.rouge", {"validation.bleu", "validation.loss", "validation.exact"}).empty());
    CHECK(nearest("validation.exat", {"validation.loss", "validation.exact"}) == "validation.exact");
    CHECK(nearest("valdation.loss", {"validation.loss", "validation.exact"}) == "validation.loss");
    CHECK(nearest("validation.bleu", {"loss", "bleu"}) == "bleu");
    CHECK(nearest("bleu", {"validation.ema.bleu", "validation.bleu", "validation.loss"}) == "validation.bleu");
    CHECK(nearest("", {"heads"}).empty());
    CHECK(nearest("heads", {}).empty());
    CHECK(nearest(std::string(1 << 20, 'a'), {"heads", ""}).empty());
  }

  TEST_CASE("a page of help names every key once, with type, range, default and meaning") {
    sample::Experiment experiment;
    std::string const page = describe(experiment);
    for (char const* const part : {"train.clip                   a number > 0 or null              1.0           largest gradient norm\n",
                                   "model.kind: recurrent_lm", "a section or one of dot, local-p", "required"})
      CHECK_MESSAGE(page.find(part) != page.npos, part);
    for (auto const& pair : flatten(tree(experiment))) CHECK_MESSAGE(("\n" + page).find("\n" + pair.first + " ") != page.npos, pair.first);
  }

  TEST_CASE("a path is beside the file, else in the data folder") {
    test::Folder const config, data;
    for (auto const& file : {config / "both.txt", data / "both.txt", data / "only.txt"}) test::put(file, "");
    CHECK(resolve_path("./only.txt", config.path(), data.path()) == data / "only.txt");
    for (std::filesystem::path const& folder : {data.path(), std::filesystem::path()}) {
      CHECK(resolve_path("both.txt", config.path(), folder) == config / "both.txt");
      CHECK(resolve_path((data / "only.txt").string(), config.path(), folder) == data / "only.txt");
    }
    CHECK_THROWS_WITH_AS(resolve_path("no.txt", config.path(), data.path()),
                         ("no.txt: no such file, neither as " + (config / "no.txt").string() + " (beside the configuration) nor as " +
                          (data / "no.txt").string() + " (in the data folder)")
                             .c_str(),
                         ConfigError);
    CHECK_THROWS_WITH_AS(resolve_path("/no/such.txt", config.path(), data.path()), "/no/such.txt: no such file", ConfigError);
    CHECK_THROWS_WITH_AS(resolve_path("only.txt", config.path(), {}), doctest::Contains("there is no data folder: --data DIR names one"),
                         ConfigError);
  }
}
